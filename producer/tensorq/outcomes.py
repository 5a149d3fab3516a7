"""Outcomes of jobs, read in bulk: the packed result, or the error that stands in its place."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, cast

from redis import Redis

from tensorq import keys
from tensorq.errors import JobCancelled, JobError, JobExpired
from tensorq.failure import job_failed
from tensorq.status import Status, from_rq

TRIP_JOBS = 64
TRIP_BYTES = 32 * 1024 * 1024

Outcome = bytes | JobError


class Outcomes:
    """Reads outcomes, at most `TRIP_JOBS` and about `TRIP_BYTES` in a round trip.

    Args:
        redis: a connection that does not decode responses.
    """

    def __init__(self, redis: Redis) -> None:
        self._redis = redis
        # Of the last round trip; a guess until then. Threads may overwrite each other's: it is a hint.
        self._typical_bytes = TRIP_BYTES // 8

    def trips(self, job_ids: Iterable[str]) -> Iterator[list[str]]:
        """Splits ids into round trips, of a size that follows the results seen so far."""
        rest = iter(job_ids)
        while trip := list(islice(rest, max(1, min(TRIP_JOBS, TRIP_BYTES // (self._typical_bytes + 1))))):
            yield trip

    def results(self, job_ids: Sequence[str]) -> dict[str, Outcome]:
        """Packed results of those jobs that have one, in one round trip."""
        packed = cast(list[bytes | None], self._redis.mget([keys.RESULT + job_id for job_id in job_ids]))
        sizes = [len(result) for result in packed if result is not None]
        if sizes:
            self._typical_bytes = sum(sizes) // len(sizes)
        return {job_id: result for job_id, result in zip(job_ids, packed, strict=True) if result is not None}

    def ended(self, job_ids: Sequence[str]) -> dict[str, Outcome]:
        """Outcomes of jobs; those that have not ended are left out."""
        found = self.results(job_ids)
        rest = [job_id for job_id in job_ids if job_id not in found]
        if rest:
            with self._redis.pipeline(transaction=False) as pipe:
                for job_id in rest:
                    # The status first: a job that is finished by then has its result after it.
                    pipe.hget(keys.job(job_id), "status")
                    pipe.get(keys.result(job_id))
                    pipe.xrevrange(keys.results(job_id), count=1)
                replies = iter(pipe.execute())
            for job_id, status, result, stream in zip(rest, replies, replies, replies, strict=False):
                outcome = _outcome(job_id, from_rq(status), result, stream)
                if outcome is not None:
                    found[job_id] = outcome
        return found


def _outcome(job_id: str, status: Status, result: bytes | None, stream: list[Any]) -> Outcome | None:
    if result is not None:
        return result
    if status is Status.FAILED:
        return job_failed(job_id, stream[0][1].get(b"exc_string") if stream else None)
    if status is Status.CANCELLED:
        return JobCancelled(job_id, f"job {job_id} was cancelled or stopped; submit it again if it is needed")
    if status is Status.FINISHED:
        return JobExpired(
            job_id, f"job {job_id} finished, but its result is gone; read it sooner or raise result_ttl"
        )
    if status is Status.EXPIRED:
        return JobExpired(
            job_id,
            f"job {job_id} is not in Redis: it outlived its ttl, result_ttl or failure_ttl, was deleted, or "
            "never existed; submit it again, with a longer ttl where that was the cause",
        )
    return None
