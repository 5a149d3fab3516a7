"""RQ's stop commands, for one job of the many that a worker holds."""

from __future__ import annotations

import time

import numpy as np
import pytest
from redis import Redis
from rq import Callback
from rq.command import send_stop_execution_command, send_stop_job_command
from rq.job import Job, JobStatus
from rq.registry import FailedJobRegistry

from fixtures.callbacks import seen
from fixtures.rqstate import leftovers
from fixtures.servers import on_redis_and_valkey
from fixtures.workers import Workers, wait_until
from tensorq import Client, JobCancelled, keys

pytestmark = pytest.mark.integration

X = {"x": np.ones((2, 3), np.float32)}
LONG = {"x": np.full((1, 1), 6000, np.float32)}
LEASES = ("rq:wip:*", "rq:execution*", "rq:worker:*:executions")


def await_status(redis: Redis, job_id: str, status: JobStatus) -> Job:
    job = Job.fetch(job_id, connection=redis)
    wait_until(lambda: job.get_status() is status, what=f"{status.value}, is {job.get_status().value}")
    job.refresh()
    return job


@on_redis_and_valkey
@pytest.mark.parametrize("model", ["patient", "nap"])
def test_a_stopped_job_ends_stopped_and_calls_back(
    client: Client, redis: Redis, fleet: Workers, model: str
) -> None:
    fleet.start(model)
    options = {
        "on_stopped": Callback("fixtures.callbacks.stopped"),
        "on_failure": Callback("fixtures.callbacks.failed"),
    }
    job = client.submit(model, LONG, retry=3, **options)
    await_status(redis, job.id, JobStatus.STARTED)
    time.sleep(0.2)
    send_stop_job_command(redis, job.id)

    read = await_status(redis, job.id, JobStatus.STOPPED)
    assert read.retries_left == 3
    assert "stopped by user" in read.latest_result().exc_string
    assert [note["what"] for note in seen(redis)] == ["stopped"]
    assert FailedJobRegistry(model, connection=redis).get_job_ids() == [job.id]
    assert not redis.exists(keys.result(job.id))
    assert leftovers(redis, *LEASES) == {}
    with pytest.raises(JobCancelled):
        job.result(timeout=5)


def test_stopping_one_job_leaves_its_neighbours(client: Client, redis: Redis, fleet: Workers) -> None:
    fleet.start("patient")
    jobs = client.submit_many("patient", [X] * 3)
    await_status(redis, jobs[2].id, JobStatus.STARTED)
    send_stop_job_command(redis, jobs[1].id)
    await_status(redis, jobs[1].id, JobStatus.STOPPED)
    # Enough rows for a tile of the largest size.
    jobs += client.submit_many("patient", [X] * 14)
    others = [job for job in jobs if job is not jobs[1]]
    assert len(client.gather(others, timeout=10)) == 16


def test_a_stopped_execution_is_the_stopped_job(client: Client, redis: Redis, fleet: Workers) -> None:
    fleet.start("patient")
    job = client.submit("patient", X)
    read = await_status(redis, job.id, JobStatus.STARTED)
    send_stop_execution_command(redis, job.id, read.get_executions()[0].id)
    await_status(redis, job.id, JobStatus.STOPPED)


def test_a_stopped_callback_that_raises_does_not_keep_the_job(
    client: Client, redis: Redis, fleet: Workers
) -> None:
    worker = fleet.start("patient", "affine")
    for callback in ("raises", "leaves"):
        job = client.submit("patient", X, on_stopped=Callback(f"fixtures.callbacks.{callback}"))
        await_status(redis, job.id, JobStatus.STARTED)
        send_stop_job_command(redis, job.id)
        await_status(redis, job.id, JobStatus.STOPPED)
    assert client.submit("affine", X).result(timeout=10)
    assert "the callback's own trouble" in worker.log


def test_a_job_stopped_in_a_tile_that_fails_is_stopped(client: Client, redis: Redis, fleet: Workers) -> None:
    worker = fleet.start("doomed")
    job = client.submit("doomed", LONG)
    await_status(redis, job.id, JobStatus.STARTED)
    time.sleep(0.3)
    send_stop_job_command(redis, job.id)
    await_status(redis, job.id, JobStatus.STOPPED)
    assert "TileFailed" not in worker.log


def test_stopping_a_job_that_is_not_held_is_ignored(client: Client, redis: Redis, fleet: Workers) -> None:
    worker = fleet.start("affine", "--name", "w1")
    job = client.submit("affine", X)
    job.result(timeout=10)

    def ignored() -> bool:
        # The client may have the result before the worker has let go of the job: then nothing is said.
        send_stop_job_command(redis, job.id)
        return "stop ignored" in worker.log

    wait_until(ignored, what="the warning")
    assert Job.fetch(job.id, connection=redis).is_finished
