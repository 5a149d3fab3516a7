"""Wake: what ends the loop's sleep, set by other threads and by signal handlers."""

from __future__ import annotations

from queue import Empty, SimpleQueue


class Wake:
    """A flag to wait for, as `threading.Event`, but one that a signal handler may set.

    An Event's ``set`` takes a lock that its ``clear`` and ``wait`` hold for a moment: a handler that runs in
    the main thread just then waits for itself for good. ``SimpleQueue.put`` is reentrant. One thread at a
    time waits and clears.
    """

    def __init__(self) -> None:
        self._tokens: SimpleQueue[None] = SimpleQueue()

    def set(self) -> None:
        """Sets the flag, and ends the wait for it."""
        if self._tokens.empty():
            self._tokens.put(None)

    def clear(self) -> None:
        """Takes the flag back."""
        # To ask first is far quicker than to find it empty, and each round of the loop clears it.
        while not self._tokens.empty():
            self._take(0.0)

    def wait(self, timeout_s: float) -> bool:
        """Waits until the flag is set, ``timeout_s`` seconds at most; returns whether it is."""
        found = self._take(timeout_s)
        if found:
            self.set()
        return found

    def _take(self, timeout_s: float) -> bool:
        try:
            self._tokens.get(timeout=max(0.0, timeout_s))
        except Empty:
            return False
        return True
