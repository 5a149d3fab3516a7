"""Jobs that RQ's API cancels, deletes or empties away, while they wait and while they run."""

from __future__ import annotations

import time

import numpy as np
import pytest
from redis import Redis
from rq import Queue
from rq.job import Job, JobStatus
from rq.registry import CanceledJobRegistry, StartedJobRegistry

from fixtures.rqstate import leftovers
from fixtures.servers import on_redis_and_valkey
from fixtures.workers import Workers, wait_until
from tensorq import Client, JobCancelled, JobExpired, keys

pytestmark = pytest.mark.integration

X = {"x": np.ones((2, 3), np.float32)}
LONG = {"x": np.full((1, 1), 6000, np.float32)}
FAST_BEAT = ("--beat-s", "0.2")


def status(redis: Redis, job_id: str) -> JobStatus:
    return Job.fetch(job_id, connection=redis).get_status()


def await_started(redis: Redis, job_id: str) -> Job:
    job = Job.fetch(job_id, connection=redis)
    wait_until(lambda: job.get_status() is JobStatus.STARTED, what="started")
    return job


def await_clean(redis: Redis) -> None:
    wait_until(lambda: leftovers(redis) == {}, what=f"no leftovers, now {leftovers(redis)}")


def test_a_job_cancelled_while_queued_is_never_run(client: Client, redis: Redis, fleet: Workers) -> None:
    jobs = client.submit_many("affine", [X] * 3)
    Job.fetch(jobs[1].id, connection=redis).cancel()
    assert Queue("affine", connection=redis).count == 2
    fleet.start("affine", "--burst").wait()
    assert [status(redis, job.id).value for job in jobs] == ["finished", "canceled", "finished"]
    assert CanceledJobRegistry("affine", connection=redis).get_job_ids() == [jobs[1].id]
    with pytest.raises(JobCancelled):
        jobs[1].result(timeout=5)


def test_the_sweep_drops_the_input_of_a_job_that_rq_cancelled(
    client: Client, redis: Redis, fleet: Workers
) -> None:
    job = client.submit("affine", X)
    Job.fetch(job.id, connection=redis).cancel()
    fleet.start("affine")
    await_clean(redis)


@on_redis_and_valkey
def test_a_job_cancelled_while_it_waits_in_a_stage_leaves_nothing(
    client: Client, redis: Redis, fleet: Workers
) -> None:
    fleet.start("patient", *FAST_BEAT)
    job = client.submit("patient", X)
    await_started(redis, job.id).cancel()
    assert StartedJobRegistry("patient", connection=redis).count == 0
    await_clean(redis)
    assert status(redis, job.id) is JobStatus.CANCELED
    with pytest.raises(JobCancelled):
        job.result(timeout=5)


@on_redis_and_valkey
@pytest.mark.parametrize("beat_s", ["0.2", "30"])
def test_the_result_of_a_job_cancelled_while_it_runs_is_dropped(
    client: Client, redis: Redis, fleet: Workers, beat_s: str
) -> None:
    fleet.start("nap", "--beat-s", beat_s)
    job = client.submit("nap", LONG)
    read = await_started(redis, job.id)
    time.sleep(0.2)
    read.cancel()
    await_clean(redis)
    assert status(redis, job.id) is JobStatus.CANCELED
    assert read.results() == []
    assert not redis.exists(keys.result(job.id))


@pytest.mark.parametrize("model", ["patient", "nap"])
def test_the_clients_own_cancel_leaves_nothing(
    client: Client, redis: Redis, fleet: Workers, model: str
) -> None:
    fleet.start(model, *FAST_BEAT)
    job = client.submit(model, LONG)
    await_started(redis, job.id)
    assert job.cancel()
    assert not job.cancel()
    await_clean(redis)
    with pytest.raises(JobCancelled):
        job.result(timeout=5)


def test_a_job_deleted_while_queued_leaves_its_input_to_the_sweep(
    client: Client, redis: Redis, fleet: Workers
) -> None:
    job, other = client.submit_many("affine", [X] * 2)
    Job.fetch(job.id, connection=redis).delete()
    assert Queue("affine", connection=redis).job_ids == [other.id]
    fleet.start("affine")
    assert other.result(timeout=10)["y"].shape == (2, 3)
    await_clean(redis)
    with pytest.raises(JobExpired):
        job.result(timeout=5)


@on_redis_and_valkey
@pytest.mark.parametrize("model", ["patient", "nap"])
@pytest.mark.parametrize("beat_s", ["0.2", "30"])
def test_a_job_deleted_while_running_leaves_nothing(
    client: Client, redis: Redis, fleet: Workers, model: str, beat_s: str
) -> None:
    fleet.start(model, "--beat-s", beat_s)
    job = client.submit(model, LONG)
    read = await_started(redis, job.id)
    read.delete()
    if (model, beat_s) == ("patient", "30"):
        # Until a beat tells, the job waits in the worker: nothing of it may be written.
        time.sleep(0.3)
        assert not redis.exists(keys.job(job.id))
        return
    await_clean(redis)
    assert list(redis.scan_iter(f"*{job.id}*")) == []


def test_emptying_a_queue_gives_the_bytes_back(client: Client, redis: Redis, fleet: Workers) -> None:
    client.submit_many("affine", [X] * 20)
    assert int(redis.get(keys.input_bytes("affine"))) > 0
    Queue("affine", connection=redis).empty()
    fleet.start("affine")
    await_clean(redis)


def test_a_whole_deleted_queue_gives_the_bytes_back(client: Client, redis: Redis, fleet: Workers) -> None:
    client.submit_many("affine", [X] * 3)
    Queue("affine", connection=redis).delete(delete_jobs=True)
    fleet.start("affine")
    await_clean(redis)


def test_a_hash_that_lost_its_queue_entry_is_not_swept(client: Client, redis: Redis, fleet: Workers) -> None:
    job = client.submit("affine", X)
    redis.delete(keys.queue("affine"))
    fleet.start("affine")
    time.sleep(0.3)
    assert redis.exists(keys.input(job.id))
