"""Running tilings on a GPU, in turns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from ops.bench.tiling.compare import total
from ops.bench.tiling.policies import pad_up, trim_to_preferred

from tensorq_engines import Slot
from tensorq_engines.base.admission import Shapes
from tensorq_engines.costs.feed import TileFeed
from tensorq_engines.tensorrt.cuda.stream import Event, Stream
from tensorq_engines.tensorrt.engine import TensorRtEngine
from tensorq_engines.tensorrt.lane import TensorRtLane
from tensorq_engines.tensorrt.slot import TensorRtSlot
from tensorq_worker.planner import Tiling

LEAST_ROUNDS = 9
MOST_ROUNDS = 101


@dataclass(frozen=True, slots=True)
class Rival:
    """A tiling that was run.

    Attributes:
        sizes: its tiles, in order.
        cost_ms: by the cost table.
        span_ms: from the first tile's copy in to the last one's copy out, on the device; the median.
        busy_ms: of that, what tiles took; the rest is waiting for the host.
    """

    sizes: tuple[int, ...]
    cost_ms: float
    span_ms: float
    busy_ms: float

    def to_dict(self) -> dict[str, Any]:
        times = {name: round(getattr(self, name), 5) for name in ("cost_ms", "span_ms", "busy_ms")}
        return {"sizes": list(self.sizes), **times}


class TilingRun:
    """Runs tilings of one model and shape of a row."""

    def __init__(
        self, lane: TensorRtLane, engine: TensorRtEngine, row_shapes: Shapes, budget_s: float
    ) -> None:
        self.ladder = engine.ladder_for(row_shapes)
        self._feed = TileFeed(lane, engine, row_shapes)
        self._budget_s = budget_s
        self._stream = Stream()
        self._epoch = Event(timing=True)

    def interleaved(self, tilings: Sequence[tuple[int, ...]]) -> list[tuple[float, float]]:
        """Returns the median span and busy time in ms of each tiling, run in turns within the budget."""
        first = [self._once(sizes) for sizes in tilings]
        rounds = int(1000 * self._budget_s / sum(span for span, _ in first))
        samples: list[list[tuple[float, float]]] = [[] for _ in tilings]
        for _ in range(max(LEAST_ROUNDS, min(MOST_ROUNDS, rounds))):
            for kept, sizes in zip(samples, tilings, strict=True):
                kept.append(self._once(sizes))
        return [(median(span for span, _ in kept), median(busy for _, busy in kept)) for kept in samples]

    def close(self) -> None:
        """Gives the epoch's event and stream back."""
        self._epoch.close()
        self._stream.close()

    def _once(self, sizes: tuple[int, ...]) -> tuple[float, float]:
        # Anew each time: CUDA tells times in float32, which is coarse far from the epoch.
        self._epoch.record(self._stream)
        self._epoch.wait()
        spans: list[tuple[float, float]] = []

        def note(slot: Slot) -> None:
            assert isinstance(slot, TensorRtSlot)
            spans.append(slot.span_s(self._epoch))

        try:
            for size in sizes:
                self._feed.put(size, note)
            self._feed.drain()
        finally:
            self._feed.abandon()
        busy_s = sum(end - begin for begin, end in spans)
        return 1000 * (spans[-1][1] - spans[0][0]), 1000 * busy_s


def run_rivals(run: TilingRun, costs_ms: Mapping[int, float], rows: int) -> dict[str, Rival]:
    """Runs the planner's tiling and the two simple ones; the same tiling is run once."""
    ways = {
        "planner": Tiling(run.ladder, costs_ms).sizes(rows),
        "pad_up": pad_up(rows, run.ladder),
        "trim": trim_to_preferred(rows, run.ladder),
    }
    distinct = list(dict.fromkeys(ways.values()))
    times = dict(zip(distinct, run.interleaved(distinct), strict=True))
    return {way: Rival(sizes, total(costs_ms, sizes), *times[sizes]) for way, sizes in ways.items()}
