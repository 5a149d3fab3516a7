"""Where a job is in its life, in six words instead of RQ's eleven."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from redis import Redis

from tensorq import keys


class Status(StrEnum):
    """Where a job is in its life."""

    PENDING = "pending"
    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"
    CANCELLED = "cancelled"
    EXPIRED = "expired"

    @property
    def ended(self) -> bool:
        """True where the job will not change any more, unless someone requeues it."""
        return self is not Status.PENDING and self is not Status.RUNNING


_BY_RQ_STATUS = {
    b"started": Status.RUNNING,
    b"finished": Status.FINISHED,
    b"failed": Status.FAILED,
    b"canceled": Status.CANCELLED,
    b"stopped": Status.CANCELLED,
    None: Status.EXPIRED,
}


def from_rq(status: bytes | None) -> Status:
    """The status for the field of RQ's job hash; None where there is no hash."""
    # Queued, deferred, scheduled, created, rate limited, ready to enqueue: it waits.
    return _BY_RQ_STATUS.get(status, Status.PENDING)


def read(redis: Redis, job_ids: Sequence[str]) -> list[Status]:
    """Statuses of jobs, in order, in one round trip."""
    if not job_ids:
        return []
    with redis.pipeline(transaction=False) as pipe:
        for job_id in job_ids:
            pipe.hget(keys.job(job_id), "status")
        return [from_rq(status) for status in pipe.execute()]
