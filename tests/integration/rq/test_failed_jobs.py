"""Failed jobs: requeued by RQ's tools, retried by RQ's rules, and what is kept of them."""

from __future__ import annotations

import numpy as np
import pytest
from redis import Redis
from rq import Retry, Worker
from rq.job import Job, JobStatus
from rq.registry import FailedJobRegistry, ScheduledJobRegistry
from rq.results import Result

from fixtures.rqstate import leftovers
from fixtures.servers import on_redis_and_valkey
from fixtures.workers import Workers, wait_until
from tensorq import Client, JobFailed, keys, wire

pytestmark = pytest.mark.integration

BAD = {"index": np.array([99], np.int64)}
GOOD = {"index": np.array([1], np.int64)}
LEASES = ("rq:wip:*", "rq:execution*", "rq:worker:*:executions")


def fail_one(client: Client, **options: object) -> str:
    job = client.submit("gather", BAD, **options)
    with pytest.raises(JobFailed):
        job.result(timeout=15)
    return job.id


def mend(redis: Redis, job_id: str) -> None:
    """Puts an input in place that the model runs."""
    redis.set(keys.input(job_id), wire.pack(GOOD), keepttl=True)


@on_redis_and_valkey
def test_a_requeued_job_runs_again_and_can_succeed(client: Client, redis: Redis, fleet: Workers) -> None:
    fleet.start("gather")
    job_id = fail_one(client)
    mend(redis, job_id)
    FailedJobRegistry("gather", connection=redis).requeue(job_id)
    wait_until(lambda: Job.fetch(job_id, connection=redis).is_finished, what="finished")

    assert client.result(job_id, timeout=5)["y"].tolist() == [[4, 5, 6, 7]]
    assert FailedJobRegistry("gather", connection=redis).count == 0
    kinds = [result.type for result in Job.fetch(job_id, connection=redis).results()]
    assert kinds == [Result.Type.SUCCESSFUL, Result.Type.FAILED]
    assert leftovers(redis) == {}


def test_rq_requeue_runs_all_failed_jobs_again(client: Client, redis: Redis, fleet: Workers) -> None:
    fleet.start("gather")
    failed = [fail_one(client) for _ in range(2)]
    for job_id in failed:
        mend(redis, job_id)
    fleet.rq_tool("requeue", "--queue", "gather", "--all")
    for job_id in failed:
        wait_until(lambda job_id=job_id: Job.fetch(job_id, connection=redis).is_finished, what="finished")
    assert leftovers(redis) == {}


def test_a_requeued_job_lives_by_its_result_ttl(client: Client, redis: Redis, fleet: Workers) -> None:
    fleet.start("gather")
    job_id = fail_one(client, result_ttl=-1, failure_ttl=100)
    assert 0 < redis.ttl(keys.job(job_id)) <= 100
    mend(redis, job_id)
    FailedJobRegistry("gather", connection=redis).requeue(job_id)
    wait_until(lambda: Job.fetch(job_id, connection=redis).is_finished, what="finished")
    assert redis.ttl(keys.job(job_id)) == -1
    assert redis.ttl(keys.results(job_id)) == -1


@on_redis_and_valkey
def test_retries_are_counted_and_the_job_finally_fails(client: Client, redis: Redis, fleet: Workers) -> None:
    fleet.start("gather", "--name", "w1")
    job_id = fail_one(client, retry=Retry(max=2))

    read = Job.fetch(job_id, connection=redis)
    assert (read.get_status(), read.retries_left) == (JobStatus.FAILED, 0)
    # RQ keeps the result of the last try alone, and counts every try.
    assert [result.type for result in read.results()] == [Result.Type.FAILED]
    assert Worker.all(connection=redis)[0].failed_job_count == 3
    assert FailedJobRegistry("gather", connection=redis).get_job_ids() == [job_id]
    assert leftovers(redis, *LEASES) == {}


def test_a_retried_job_can_succeed(client: Client, redis: Redis, fleet: Workers) -> None:
    worker = fleet.start("gather", "--with-scheduler")
    job = client.submit("gather", BAD, retry=Retry(max=1, interval=1))
    wait_until(lambda: Job.fetch(job.id, connection=redis).is_scheduled, what="scheduled")
    assert ScheduledJobRegistry("gather", connection=redis).get_job_ids() == [job.id]
    assert leftovers(redis, *LEASES) == {}
    mend(redis, job.id)
    assert job.result(timeout=15)["y"].tolist() == [[4, 5, 6, 7]]
    assert leftovers(redis) == {}
    assert "rror" not in worker.log.replace("TileFailed", "").split("scheduled for retry")[-1]


def test_retries_with_intervals_end_in_failure(client: Client, redis: Redis, fleet: Workers) -> None:
    fleet.start("gather", "--with-scheduler")
    job_id = fail_one(client, retry=Retry(max=2, interval=[1, 1]))
    assert Job.fetch(job_id, connection=redis).retries_left == 0
    assert ScheduledJobRegistry("gather", connection=redis).count == 0
    assert leftovers(redis, *LEASES) == {}


def test_failure_ttl_bounds_the_job_and_its_input(client: Client, redis: Redis, fleet: Workers) -> None:
    fleet.start("gather")
    short, long, default = (
        fail_one(client, failure_ttl=50),
        fail_one(client, failure_ttl=-1),
        fail_one(client),
    )
    assert 0 < redis.ttl(keys.job(short)) <= 50
    assert 0 < redis.ttl(keys.results(short)) <= 50
    assert 0 < redis.ttl(keys.input(short)) <= 50
    assert redis.ttl(keys.job(long)) == -1
    week_s = 7 * 24 * 3600
    for job_id in (long, default):
        assert week_s - 100 < redis.ttl(keys.input(job_id)) <= week_s
    assert redis.ttl(keys.job(default)) > 300 * 24 * 3600


def test_a_job_without_a_payload_fails_alone(client: Client, redis: Redis, fleet: Workers) -> None:
    jobs = client.submit_many("affine", [{"x": np.ones((1, 3), np.float32)}] * 3)
    redis.delete(keys.input(jobs[1].id))
    fleet.start("affine")
    first, second, third = client.gather(jobs, timeout=10, return_errors=True)
    assert first["y"].shape == third["y"].shape == (1, 3)
    assert second.kind == "WireError"


def test_one_poison_row_fails_alone_in_its_tile(client: Client, redis: Redis, fleet: Workers) -> None:
    jobs = client.submit_many("gather", [GOOD] * 5 + [BAD] + [GOOD] * 5)
    fleet.start("gather")
    outcomes = client.gather(jobs, timeout=10, return_errors=True)
    assert [i for i, outcome in enumerate(outcomes) if isinstance(outcome, JobFailed)] == [5]
