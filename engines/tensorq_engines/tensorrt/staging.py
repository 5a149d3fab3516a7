"""Staging: one slot's page-locked memory and its event."""

from __future__ import annotations

from tensorq_engines.tensorrt.cuda.stream import Event
from tensorq_engines.tensorrt.pinned import PinnedBlock


class Staging:
    """Memory that one tile at a time owns, from acquire to release.

    Attributes:
        index: its place on the lane, part of the key of graphs: they know its addresses.
        inputs: page-locked, in the engine's dtypes.
        outputs: page-locked, in the engine's dtypes.
        event: recorded behind the copy out of the tile submitted last.
    """

    def __init__(self, index: int) -> None:
        self.index = index
        self.inputs = PinnedBlock()
        self.outputs = PinnedBlock()
        self.event: Event | None = None

    @property
    def size_bytes(self) -> int:
        """Page-locked bytes taken."""
        return self.inputs.capacity + self.outputs.capacity

    def close(self) -> None:
        """Frees the memory; no copy may be under way. Idempotent."""
        self.inputs.close()
        self.outputs.close()
        if self.event is not None:
            self.event.close()
            self.event = None
