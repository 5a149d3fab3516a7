"""Serial: one tile at a time over all lanes that ask for it."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from tensorq_engines.tensorrt.cuda.stream import Event, Stream
from tensorq_engines.tensorrt.staging import Staging


class Serial:
    """Chains the tiles of several streams on the device, without holding up the host.

    Some drivers faulted when graphs of two contexts ran at once (NVIDIA/TensorRT issue 4061).
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last: Event | None = None

    @contextmanager
    def turn(self, stream: Stream, event: Event) -> Iterator[None]:
        """Queues a tile behind the last one of any stream.

        Args:
            stream: the tile's.
            event: recorded inside, behind the tile.
        """
        with self._lock:
            if self._last is not None:
                stream.wait_for(self._last)
            yield
            self._last = event

    def forget(self, stagings: Iterable[Staging]) -> None:
        """Forgets the last tile where it was one of these, whose events are about to go."""
        with self._lock:
            if any(staging.event is self._last for staging in stagings):
                self._last = None


SERIAL = Serial()
