"""Models, tiles and clocks of the GPU benchmark."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tensorq_engines.base.admission import Shapes
from tensorq_engines.tensorrt.engine import TensorRtEngine
from tensorq_engines.tensorrt.lane import TensorRtLane
from tensorq_engines.tensorrt.options import LaneOptions
from tensorq_engines.tensorrt.slot import TensorRtSlot


@dataclass(frozen=True)
class Workload:
    """A loaded engine and inputs for its tiles."""

    engine: TensorRtEngine

    @classmethod
    def load(cls, name: str, folder: Path) -> Workload:
        """Loads a plan by name."""
        engine = TensorRtEngine(name, folder / f"{name}.plan")
        engine.load()
        return cls(engine)

    def shapes(self, rows: int) -> Shapes:
        """A tile of ``rows`` rows, at the first profile's opt otherwise (rec: W = 320)."""
        return {item.name: (rows, *item.opt[1:]) for item in self.engine.profiles[0]}

    def inputs(self, rows: int) -> dict[str, np.ndarray]:
        """Random inputs for such a tile."""
        dtypes = {spec.name: spec.dtype for spec in self.engine.signature.inputs}
        rng = np.random.default_rng(rows)
        return {
            name: rng.uniform(-1, 1, shape).astype(dtypes[name]) for name, shape in self.shapes(rows).items()
        }


def lane(slots: int = 2, **options: Any) -> TensorRtLane:
    """A lane with options."""
    return TensorRtLane(slots, LaneOptions(**options))


def fill(lane: TensorRtLane, work: Workload, inputs: dict[str, np.ndarray]) -> TensorRtSlot:
    """A filled slot."""
    slot = take(lane, work, next(iter(inputs.values())).shape[0])
    for name, view in slot.inputs.items():
        np.copyto(view, inputs[name])
    return slot


def take(lane: TensorRtLane, work: Workload, rows: int) -> TensorRtSlot:
    """A slot that holds what was in it before."""
    slot = lane.acquire(work.engine, work.shapes(rows))
    assert isinstance(slot, TensorRtSlot)
    return slot


def turn(lane: TensorRtLane, slot: TensorRtSlot) -> float:
    """Microseconds from submit to the end of wait."""
    started = time.perf_counter()
    lane.submit(slot)
    slot.wait()
    return (time.perf_counter() - started) * 1e6


def warm(lane: TensorRtLane, work: Workload, rows: int) -> None:
    """Fills every slot once and runs it, so that what can be captured is."""
    for _ in range(2):
        slots = [fill(lane, work, work.inputs(rows)) for _ in range(lane.slot_count)]
        for slot in slots:
            turn(lane, slot)
            slot.release()


def interleaved(rounds: int, *steps: Callable[[], float]) -> list[float]:
    """Medians of several measurements, taken in turns so that drift hits all alike."""
    samples: list[list[float]] = [[] for _ in steps]
    for _ in range(rounds):
        for kept, step in zip(samples, steps, strict=True):
            kept.append(step())
    return [statistics.median(kept) for kept in samples]


def rounds_for(us: float, budget_s: float, most: int = 400) -> int:
    """Rounds of about ``us`` microseconds that fit a budget."""
    return max(10, min(most, int(budget_s * 1e6 / max(us, 1.0))))
