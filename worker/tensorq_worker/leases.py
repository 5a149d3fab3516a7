"""Leases: the jobs that this worker holds now, as its threads share them."""

from __future__ import annotations

import threading
from collections.abc import Iterable

from tensorq_worker.broker import Claimed
from tensorq_worker.tiles import Run


class Leases:
    """A thread-safe register of claimed jobs, by id."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: dict[str, Claimed] = {}
        self._runs: dict[str, Run] = {}

    def add(self, jobs: Iterable[Claimed]) -> None:
        """Registers jobs just claimed."""
        with self._lock:
            for job in jobs:
                self._held[job.job_id] = job
                self._drop_run(job.job_id)

    def end(self, jobs: Iterable[Claimed]) -> None:
        """Forgets jobs that are finished, failed, given back or lost; unless leased anew since."""
        with self._lock:
            for job in jobs:
                if self._forget(job):
                    self._runs.pop(job.job_id, None)

    def attach(self, run: Run) -> None:
        """Notes the run of a held job."""
        with self._lock:
            self._runs[run.job.job_id] = run

    def run(self, job_id: str) -> Run | None:
        """The run of a held job, or None where it has none."""
        with self._lock:
            return self._runs.get(job_id)

    def run_of(self, job: Claimed) -> Run | None:
        """The run under this very lease; None where it has none, or the job was leased anew since."""
        run = self.run(job.job_id)
        return run if run is not None and run.job.token == job.token else None

    def drop(self, jobs: Iterable[Claimed]) -> None:
        """Forgets leases that are gone in Redis: their rows are not worth running."""
        with self._lock:
            for job in jobs:
                if self._forget(job):
                    self._drop_run(job.job_id)

    def all(self) -> list[Claimed]:
        """The jobs held now, oldest claim first."""
        with self._lock:
            return list(self._held.values())

    def get(self, job_id: str) -> Claimed | None:
        """The lease on a job, or None."""
        with self._lock:
            return self._held.get(job_id)

    def __len__(self) -> int:
        return len(self._held)

    def _forget(self, job: Claimed) -> bool:
        """Forgets a lease, with the lock held; False where it is not held, or the job was leased anew."""
        held = self._held.get(job.job_id)
        if held is None or held.token != job.token:
            return False
        del self._held[job.job_id]
        return True

    def _drop_run(self, job_id: str) -> None:
        run = self._runs.pop(job_id, None)
        if run is not None:
            run.dropped = True
