"""Staging: one slot's page-locked memory and its events."""

from __future__ import annotations

from tensorq_engines.tensorrt.cuda.stream import Event, Stream
from tensorq_engines.tensorrt.pinned import PinnedBlock


class Staging:
    """Memory that one tile at a time owns, from acquire to release.

    Attributes:
        index: its place on the lane, part of the key of graphs: they know its addresses.
        inputs: page-locked, in the engine's dtypes.
        outputs: page-locked, in the engine's dtypes.
        begin: recorded before the copy in of the tile submitted last.
        event: recorded behind its copy out.
        ran_s: how long it ran, where more was queued behind it before ``event``; else None.
    """

    def __init__(self, index: int) -> None:
        self.index = index
        self.inputs = PinnedBlock()
        self.outputs = PinnedBlock()
        self.begin: Event | None = None
        self.event: Event | None = None
        self.ran_s: float | None = None

    def make_events(self, *, spin: bool) -> None:
        """Makes the events where they are not there; ``spin`` is how the last one is waited for."""
        if self.event is None:
            self.begin, self.event = Event(spin=spin, timing=True), Event(spin=spin, timing=True)

    def mark_begin(self, stream: Stream) -> None:
        """Marks where a tile begins in ``stream``."""
        assert self.begin is not None
        self.ran_s = None
        self.begin.record(stream)

    def mark_ran(self, stream: Stream) -> None:
        """Waits for ``stream`` and keeps how long the tile took that was queued last."""
        assert self.begin is not None
        assert self.event is not None
        self.event.record(stream)
        stream.synchronize()
        self.ran_s = self.begin.elapsed_s(self.event)

    @property
    def busy_s(self) -> float:
        """Seconds on the device that the tile took which is done."""
        assert self.begin is not None
        assert self.event is not None
        return self.begin.elapsed_s(self.event) if self.ran_s is None else self.ran_s

    @property
    def size_bytes(self) -> int:
        """Page-locked bytes taken."""
        return self.inputs.capacity + self.outputs.capacity

    def close(self) -> None:
        """Frees the memory; no copy may be under way. Idempotent."""
        self.inputs.close()
        self.outputs.close()
        for event in filter(None, (self.begin, self.event)):
            event.close()
        self.begin = self.event = None
