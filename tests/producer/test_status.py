import pytest
from redis import Redis
from rq.job import JobStatus

from tensorq import Client, Status, keys

EXPECTED = {
    JobStatus.CREATED: Status.PENDING,
    JobStatus.QUEUED: Status.PENDING,
    JobStatus.DEFERRED: Status.PENDING,
    JobStatus.SCHEDULED: Status.PENDING,
    JobStatus.RATE_LIMITED: Status.PENDING,
    JobStatus.READY_TO_ENQUEUE: Status.PENDING,
    JobStatus.STARTED: Status.RUNNING,
    JobStatus.FINISHED: Status.FINISHED,
    JobStatus.FAILED: Status.FAILED,
    JobStatus.STOPPED: Status.CANCELLED,
    JobStatus.CANCELED: Status.CANCELLED,
}


@pytest.mark.parametrize("rq_status", JobStatus, ids=lambda status: status.value)
def test_each_of_rqs_statuses_has_its_word(redis: Redis, rq_status: JobStatus) -> None:
    redis.hset(keys.job("a"), "status", rq_status.value)
    with Client(redis) as client:
        assert client.status("a") is EXPECTED[rq_status]


def test_statuses_are_in_order_and_a_job_that_is_not_there_is_expired(redis: Redis) -> None:
    redis.hset(keys.job("a"), "status", "queued")
    with Client(redis) as client:
        assert client.statuses(["none", "a"]) == [Status.EXPIRED, Status.PENDING]
        assert client.statuses([]) == []


def test_what_waits_or_runs_has_not_ended() -> None:
    assert [status for status in Status if not status.ended] == [Status.PENDING, Status.RUNNING]
