"""Feeding: one thread a lane that fills slots from host memory, and how busy that keeps the GPU."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import cycle

import numpy as np

from tensorq_engines import EngineError
from tensorq_engines.tensorrt.cuda.stream import Event, Stream
from tensorq_engines.tensorrt.engine import TensorRtEngine
from tensorq_engines.tensorrt.lane import TensorRtLane
from tensorq_engines.tensorrt.slot import TensorRtSlot

Span = tuple[float, float]


@dataclass(frozen=True)
class Source:
    """A loaded model and the rows that it is fed, which lie in ordinary memory.

    Attributes:
        label: tells sources of one model apart.
        engine: the model.
        tile: inputs of every tile.
    """

    label: str
    engine: TensorRtEngine
    tile: dict[str, np.ndarray]

    @property
    def rows(self) -> int:
        return int(next(iter(self.tile.values())).shape[0])


@dataclass
class Fed:
    """What came of feeding.

    Attributes:
        tiles: done, by source.
        spans: when each was on the device, in seconds since the epoch.
    """

    tiles: dict[str, int] = field(default_factory=dict)
    spans: list[Span] = field(default_factory=list)


class Feeder:
    """Feeds one lane with tiles of its sources in turn."""

    def __init__(self, lane: TensorRtLane, sources: Sequence[Source], epoch: Event) -> None:
        self.fed = Fed(dict.fromkeys((source.label for source in sources), 0))
        self.failure: Exception | None = None
        self._lane = lane
        self._sources = sources
        self._epoch = epoch
        self._under_way: deque[tuple[TensorRtSlot, str]] = deque()

    def run(self, until_s: float) -> None:
        """Feeds each source once, on until a time of `time.perf_counter`, and waits for what is under way."""
        try:
            for count, source in enumerate(cycle(self._sources)):
                if count >= len(self._sources) and time.perf_counter() >= until_s:
                    break
                self._put(source)
            while self._under_way:
                self._take()
        except Exception as exc:
            self.failure = exc
            self._abandon()

    def _put(self, source: Source) -> None:
        shapes = {name: array.shape for name, array in source.tile.items()}
        while (slot := self._lane.acquire(source.engine, shapes)) is None:
            self._take()
        assert isinstance(slot, TensorRtSlot)
        for name, view in slot.inputs.items():
            np.copyto(view, source.tile[name])
        self._lane.submit(slot)
        self._under_way.append((slot, source.label))

    def _take(self) -> None:
        slot, name = self._under_way[0]
        slot.wait()
        self.fed.spans.append(slot.span_s(self._epoch))
        self.fed.tiles[name] += 1
        self._under_way.popleft()
        slot.release()

    def _abandon(self) -> None:
        while self._under_way:
            slot, _ = self._under_way.popleft()
            with suppress(EngineError):
                slot.wait()
                slot.release()


@dataclass(frozen=True, slots=True)
class Rates:
    """What feeding for a while gave.

    Attributes:
        rows_s: rows a second, by source; a source is fed to one lane.
        busy: share of the time in which a tile of any lane was on the device.
    """

    rows_s: dict[str, float]
    busy: float


def feed(work: Sequence[tuple[TensorRtLane, Sequence[Source]]], seconds: float) -> Rates:
    """Feeds lanes at once, each on a thread of its own with its sources in turn.

    Time runs from the start to the end of the last tile on the device.

    Raises:
        EngineError: a tile failed.
    """
    stream, epoch = Stream(), Event(timing=True)
    try:
        epoch.record(stream)
        epoch.wait()
        feeders = [Feeder(lane, sources, epoch) for lane, sources in work]
        until_s = time.perf_counter() + seconds
        threads = [threading.Thread(target=feeder.run, args=(until_s,)) for feeder in feeders]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        epoch.close()
        stream.close()
    for feeder in feeders:
        if feeder.failure is not None:
            raise feeder.failure
    spans = [span for feeder in feeders for span in feeder.fed.spans]
    wall_s = max(end for _, end in spans)
    rows_s: dict[str, float] = {}
    for feeder, (_, sources) in zip(feeders, work, strict=True):
        for source in sources:
            rows_s[source.label] = feeder.fed.tiles[source.label] * source.rows / wall_s
    return Rates(rows_s, covered_s(spans) / wall_s)


def covered_s(spans: Iterable[Span]) -> float:
    """Returns the length of the union of spans."""
    total, reached = 0.0, float("-inf")
    for begin, end in sorted(spans):
        total += max(0.0, end - max(begin, reached))
        reached = max(reached, end)
    return total
