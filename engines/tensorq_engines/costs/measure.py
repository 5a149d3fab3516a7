"""Measuring what tiles cost, on an engine that is kept busy."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from statistics import median
from typing import Any

import numpy as np

from tensorq_engines.base.admission import Shapes, tile_shapes
from tensorq_engines.base.engine import Engine
from tensorq_engines.base.errors import EngineError, SlotMisuse
from tensorq_engines.base.lane import Lane
from tensorq_engines.base.slot import Slot

WARM_ROUNDS = 5
"""Times that each size runs before any is measured: the first run is slow, and later ones are captured."""

PATTERN = 1 << 12
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

    def order() -> Iterator[tuple[int, bool]]:
        started, warmed = clock(), 0
        while warmed < WARM_ROUNDS or clock() - started < busy_s:
            yield from ((size, False) for size in sizes)
            warmed += 1
        for _ in range(rounds):
            yield from ((size, True) for size in sizes)

    run = _Run(lane, engine, row_shapes)
    try:
        for size, counts in order():
            run.put(size, counts)
        run.drain()
    finally:
        run.abandon()
    return {size: max(LEAST_MS, 1000 * median(run.found[size])) for size in sizes}


class _Run:
    """Tiles under way, in order."""

    def __init__(self, lane: Lane, engine: Engine, row_shapes: Shapes) -> None:
        self.found: dict[int, list[float]] = {}
        self._lane = lane
        self._engine = engine
        self._row_shapes = row_shapes
        self._under_way: deque[tuple[int, bool, Slot]] = deque()
        self._filled: dict[int, int] = {}
        dtypes = [np.dtype(spec.dtype) for spec in engine.signature.inputs]
        # Memory of one input in floats that was filled at any size serves all smaller ones.
        self._keeps = len(dtypes) == 1 and dtypes[0].kind == "f"

    def put(self, size: int, counts: bool) -> None:
        shapes = tile_shapes(self._engine.signature, self._row_shapes, size)
        while (slot := self._lane.acquire(self._engine, shapes)) is None:
            if not self._under_way:
                raise SlotMisuse("no slot of the lane is free: release all before measuring")
            self._take()
        try:
            self._fill(slot)
            self._lane.submit(slot)
        except BaseException:
            slot.release()
            raise
        self._under_way.append((size, counts, slot))

    def drain(self) -> None:
        while self._under_way:
            self._take()

    def abandon(self) -> None:
        for _, _, slot in self._under_way:
            with suppress(EngineError):
                slot.wait()
            slot.release()

    def _take(self) -> None:
        size, counts, slot = self._under_way[0]
        slot.wait()
        if counts:
            self.found.setdefault(size, []).append(slot.busy_s)
        self._under_way.popleft()
        slot.release()

    def _fill(self, slot: Slot) -> None:
        for view in slot.inputs.values():
            address = view.ctypes.data
            if not self._keeps or self._filled.get(address, 0) < view.nbytes:
                _fill(view)
                self._filled[address] = view.nbytes


@cache
def _noise(dtype: np.dtype[Any]) -> np.ndarray:
    noise: np.ndarray = np.random.default_rng(0).standard_normal(PATTERN).astype(dtype)
    return noise


def _fill(view: np.ndarray) -> None:
    if view.dtype.kind != "f":
        view[...] = 0
        return
    flat, noise = view.reshape(-1), _noise(view.dtype)
    whole = flat.size - flat.size % PATTERN
    flat[:whole].reshape(-1, PATTERN)[...] = noise
    flat[whole:] = noise[: flat.size - whole]
