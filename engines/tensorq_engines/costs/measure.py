"""Measuring what tiles cost, on an engine that is kept busy."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median

from tensorq_engines.base.admission import Shapes
from tensorq_engines.base.engine import Engine
from tensorq_engines.base.lane import Lane
from tensorq_engines.base.slot import Slot
from tensorq_engines.costs.feed import TileFeed

WARM_ROUNDS = 5
"""Times that each size runs before any is measured: the first run is slow, and later ones are captured."""

LEAST_MS = 1e-6


def measure_costs(
    lane: Lane,
    engine: Engine,
    row_shapes: Shapes,
    *,
    busy_s: float = 0.3,
    rounds: int = 20,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[int, float]:
    """Runs whole tiles of every size of the ladder and returns the median of what each took, in ms.

    As many tiles as the lane has slots are under way at a time, so that the engine does not idle between
    them. The sizes take turns, so that clocks which drift do so for all alike. No other lane may run
    meanwhile, of this process or another: the caller sees to that.

    Args:
        lane: a lane of the engine's kind with all slots free.
        engine: a loaded engine.
        row_shapes: the shape of one row of each input.
        busy_s: for how long the engine is kept busy before anything is measured.
        rounds: how often each size is measured.
        clock: seconds.

    Raises:
        ShapeRefused: no tile of the ladder takes rows of these shapes.
        TileFailed: a tile failed: inputs are noise, and zeros where they are whole numbers.
        SlotMisuse: the lane has no free slot.
    """
    sizes = engine.ladder_for(row_shapes)

    found: dict[int, list[float]] = {size: [] for size in sizes}
    feed = TileFeed(lane, engine, row_shapes)
    try:
        started, warmed = clock(), 0
        while warmed < WARM_ROUNDS or clock() - started < busy_s:
            for size in sizes:
                feed.put(size, _forget)
            warmed += 1
        for _ in range(rounds):
            for size in sizes:
                feed.put(size, lambda slot, size=size: found[size].append(slot.busy_s))  # type: ignore[misc]
        feed.drain()
    finally:
        feed.abandon()
    return {size: max(LEAST_MS, 1000 * median(found[size])) for size in sizes}


def _forget(slot: Slot) -> None:
    """Takes no note of a tile that only keeps the engine busy."""
