"""Stop: what signal handlers and commands ask of the loop."""

from __future__ import annotations

from collections import deque

from tensorq_worker.loop.wake import Wake


class Stop:
    """Requests from signal handlers and other threads, which only set these.

    Attributes:
        wake: set whenever the loop has something to look at.
        requested: claim no more, finish what was claimed, then end.
        forced: hand back what is not finished and end.
        jobs: ids for which RQ's stop-job was asked.
    """

    def __init__(self) -> None:
        self.wake = Wake()
        self.requested = False
        self.forced = False
        self.jobs: deque[str] = deque()

    def request(self) -> None:
        """Asks for a warm stop."""
        self.requested = True
        self.wake.set()

    def force(self) -> None:
        """Asks for a stop now."""
        self.requested = self.forced = True
        self.wake.set()

    def job(self, job_id: str) -> None:
        """Asks for one job to be stopped."""
        self.jobs.append(job_id)
        self.wake.set()
