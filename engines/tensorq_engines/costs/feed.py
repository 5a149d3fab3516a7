"""Feed: whole tiles on a lane, as many under way as it has slots."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any

import numpy as np

from tensorq_engines.base.admission import Shapes, tile_shapes
from tensorq_engines.base.engine import Engine
from tensorq_engines.base.errors import EngineError, SlotMisuse
from tensorq_engines.base.lane import Lane
from tensorq_engines.base.slot import Slot

PATTERN = 1 << 12

Note = Callable[[Slot], None]


class TileFeed:
    """Runs tiles of noise, so that the engine does not idle between them; for measuring.

    Inputs are noise, and zeros where they are whole numbers. Memory is filled once where that is enough:
    what one input in floats holds of any size serves all smaller ones.
    """

    def __init__(self, lane: Lane, engine: Engine, row_shapes: Shapes) -> None:
        """Runs nothing.

        Args:
            lane: a lane of the engine's kind with all slots free.
            engine: a loaded engine.
            row_shapes: the shape of one row of each input.
        """
        self._lane = lane
        self._engine = engine
        self._row_shapes = row_shapes
        self._under_way: deque[tuple[Slot, Note]] = deque()
        self._filled: dict[int, int] = {}
        dtypes = [np.dtype(spec.dtype) for spec in engine.signature.inputs]
        self._keeps = len(dtypes) == 1 and dtypes[0].kind == "f"

    def put(self, size: int, note: Note) -> None:
        """Submits a tile of ``size`` rows, once a slot is free; ``note`` gets its slot when it is done.

        Raises:
            TileFailed: a tile before it failed.
            SlotMisuse: others hold all slots.
        """
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
        self._under_way.append((slot, note))

    def drain(self) -> None:
        """Waits for all tiles under way.

        Raises:
            TileFailed: one failed.
        """
        while self._under_way:
            self._take()

    def abandon(self) -> None:
        """Waits for all tiles under way, and notes none of them."""
        while self._under_way:
            slot, _ = self._under_way.popleft()
            with suppress(EngineError):
                slot.wait()
            slot.release()

    def _take(self) -> None:
        slot, note = self._under_way[0]
        slot.wait()
        note(slot)
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
