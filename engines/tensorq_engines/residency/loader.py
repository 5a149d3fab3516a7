"""Loader: the thread on which models are loaded and evicted, one job at a time."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable


class Loader:
    """Starts its thread with the first job. A daemon: a load may take minutes and keeps no process alive."""

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def submit(self, job: Callable[[], None]) -> None:
        """Queues a job, which must not raise; the caller sees to it that calls come one at a time."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="tensorq-loader", daemon=True)
            self._thread.start()
        self._jobs.put(job)

    def close(self) -> None:
        """Returns when the jobs that were queued are done; idempotent."""
        if self._thread is not None:
            self._jobs.put(None)
            if self._thread is not threading.current_thread():
                self._thread.join()

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()
