"""Collecting outcomes: what has ended is read at once, what has not is waited for."""

from __future__ import annotations

import os
from collections.abc import Generator, Sequence

from redis import Redis

from tensorq.connection import translated
from tensorq.delivery import Completions
from tensorq.job import Job
from tensorq.outcomes import Outcome, Outcomes


class Collector:
    """Collects the outcomes of one client's jobs, and of others by their ids.

    Args:
        redis: a connection that does not decode responses.
    """

    def __init__(self, redis: Redis) -> None:
        self._redis = redis
        self._outcomes = Outcomes(redis)
        self._process = os.getpid()
        self._completions = self._new_completions()

    @property
    def client_id(self) -> str:
        """Whose completion list is to be told of this process's jobs."""
        return self._current().client_id

    def ended(self, jobs: Sequence[Job], until: float) -> Generator[dict[str, Outcome]]:
        """Yields outcomes by id, in parts, as jobs end; each job once.

        Args:
            jobs: the jobs; one that is listed twice counts once.
            until: moment of ``time.monotonic``, in seconds, at which to give up.

        Raises:
            RedisUnavailable: Redis did not answer or refused.
        """
        completions, outcomes = self._current(), self._outcomes
        ids = dict.fromkeys(job.id for job in jobs)
        polled = any(job._owner != completions.client_id for job in jobs)
        with translated(self._redis), completions.waiting(ids, polled=polled) as wait:
            for trip in outcomes.trips(ids):
                if found := outcomes.results(trip):
                    wait.settle(found)
                    yield found
            while wait.outstanding or wait.ready:
                ready = wait.next(until)
                if not ready:
                    return
                for trip in outcomes.trips(ready):
                    found = outcomes.ended(trip)
                    if len(found) < len(trip):
                        wait.resume([job_id for job_id in trip if job_id not in found])
                    if found:
                        yield found

    def _current(self) -> Completions:
        # After a fork the child must not take the parent's hints, nor find its locks held.
        if os.getpid() != self._process:
            self._process, self._completions = os.getpid(), self._new_completions()
        return self._completions

    def _new_completions(self) -> Completions:
        return Completions(self._redis, os.urandom(8).hex())
