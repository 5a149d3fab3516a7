"""Lane: a stream of tiles, one running at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from types import TracebackType
from typing import ClassVar, Self

import numpy as np

from tensorq_engines.base.admission import Shapes
from tensorq_engines.base.engine import Engine
from tensorq_engines.base.errors import EngineError, ShapeRefused, SlotMisuse
from tensorq_engines.base.memory import LaneMemory
from tensorq_engines.base.slot import Slot, SlotState

MIN_SLOTS = 2


class Lane(ABC):
    """Runs tiles of any number of engines of its kind, in the order submitted, one at a time.

    The constructor is cheap: threads, streams and memory come with the first tile. Methods may be called
    from any thread.

    Attributes:
        kind: the kind of engines that the lane runs.
        slot_count: staging areas; at least two, so that one tile is filled or read while another runs.
    """

    kind: ClassVar[str]

    def __init__(self, slot_count: int = MIN_SLOTS) -> None:
        if slot_count < MIN_SLOTS:
            raise ValueError(f"got slot_count {slot_count}: a lane needs {MIN_SLOTS} slots or more")
        self.slot_count = slot_count

    @property
    @abstractmethod
    def memory(self) -> LaneMemory:
        """What the lane has taken now, slots included; from any thread."""

    @abstractmethod
    def acquire(self, engine: Engine, shapes: Shapes) -> Slot | None:
        """Takes a free slot for a tile.

        Args:
            engine: a loaded engine of this lane's kind.
            shapes: the shape of every input, the batch axis included.

        Returns:
            A filling slot that the caller owns until it releases it; None when no slot is free.

        Raises:
            ShapeRefused: the engine does not admit the shapes; judged before looking for a free slot.
            SlotMisuse: the engine is not loaded or of another kind.
            LaneClosed: the lane was closed.
            EngineFatal: an earlier tile left the process unusable.
        """

    @abstractmethod
    def submit(self, slot: Slot) -> None:
        """Queues a filled slot's tile to run, and returns at once.

        Raises:
            SlotMisuse: the slot is not filling, or is another lane's.
            LaneClosed: the lane was closed; the slot can still be released.
            EngineFatal: an earlier tile left the process unusable.
        """

    @abstractmethod
    def close(self) -> None:
        """Takes no more tiles, and returns when those already submitted are done; idempotent.

        Results stay readable: a slot keeps its memory until it is released.
        """

    def run(self, engine: Engine, tile: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Runs one tile and returns copies of its outputs, which the caller owns.

        Args:
            engine: a loaded engine of this lane's kind.
            tile: every input, the batch axis included, of the signature's dtypes.

        Raises:
            ShapeRefused: the engine does not admit the shapes, or a dtype is not the signature's.
            TileFailed: the tile failed.
            SlotMisuse: no slot is free: whoever holds them must release one first.
        """
        slot = self.acquire(engine, {name: array.shape for name, array in tile.items()})
        if slot is None:
            raise SlotMisuse(f"no slot is free of {self.slot_count}: release one before run()")
        try:
            for name, view in slot.inputs.items():
                if tile[name].dtype.newbyteorder("=") != view.dtype:
                    raise ShapeRefused(
                        f"model {engine.name!r}: got dtype {tile[name].dtype} for input {name!r}, "
                        f"expected {view.dtype}; convert it with .astype('{view.dtype}')"
                    )
                np.copyto(view, tile[name], casting="equiv")
            self.submit(slot)
            return {name: array.copy() for name, array in slot.wait().items()}
        finally:
            # An interrupt leaves the tile running: its slot is lost to the lane unless it is seen through.
            if slot.state in (SlotState.SUBMITTED, SlotState.RUNNING):
                with suppress(EngineError):
                    slot.wait()
            slot.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
