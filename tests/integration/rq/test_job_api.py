"""A tensorq job over its life, as RQ's own API shows it."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from redis import Redis
from rq import Queue, Worker
from rq.job import Job, JobStatus
from rq.registry import FailedJobRegistry, FinishedJobRegistry, StartedJobRegistry
from rq.results import Result

from fixtures.rqstate import leftovers
from fixtures.servers import on_redis_and_valkey
from fixtures.workers import Workers, wait_until
from tensorq import Client, JobFailed

pytestmark = pytest.mark.integration

X = {"x": np.ones((2, 3), np.float32)}


def test_queues_show_what_waits(client: Client, redis: Redis) -> None:
    jobs = client.submit_many("affine", [X] * 3)
    queue = Queue("affine", connection=redis)
    assert queue.job_ids == [job.id for job in jobs]
    assert queue.count == 3
    assert [job.id for job in queue.jobs] == queue.job_ids
    assert Job.fetch(jobs[2].id, connection=redis).get_position() == 2
    assert [q.name for q in Queue.all(connection=redis)] == ["affine"]


@on_redis_and_valkey
def test_a_started_job_is_in_rqs_registries(client: Client, redis: Redis, fleet: Workers) -> None:
    fleet.start("patient", "--name", "w1")
    job = client.submit("patient", X)
    read = Job.fetch(job.id, connection=redis)
    wait_until(lambda: read.get_status() is JobStatus.STARTED, what="started")

    read.refresh()
    assert read.worker_name == "w1"
    assert datetime.now(UTC) - read.started_at < timedelta(seconds=10)
    assert read.last_heartbeat is not None
    registry = StartedJobRegistry("patient", connection=redis)
    assert registry.get_job_ids() == [job.id]
    assert registry.count == 1
    assert job.id in registry
    (execution,) = read.get_executions()
    assert (execution.job_id, execution.worker_name) == (job.id, "w1")
    assert registry.get_job_and_execution_ids() == [(job.id, execution.id)]

    (worker,) = Worker.all(connection=redis)
    assert worker.name == "w1"
    assert worker.get_current_executions() == [execution]
    assert worker.current_execution_count == 1
    assert worker.get_current_job_id() == job.id
    assert worker.get_current_job().id == job.id
    wait_until(lambda: _state(redis, "w1") == "busy", what="busy")
    assert worker.queue_names() == ["patient@high", "patient", "patient@low"]
    assert [w.name for w in Worker.all(queue=Queue("patient", connection=redis))] == ["w1"]


@on_redis_and_valkey
def test_a_finished_job_has_a_successful_result(client: Client, redis: Redis, fleet: Workers) -> None:
    fleet.start("affine", "--name", "w1")
    before = datetime.now(UTC)
    jobs = client.submit_many("affine", [X] * 5)
    client.gather(jobs, timeout=10)

    for read in Job.fetch_many([job.id for job in jobs], connection=redis):
        assert read.get_status() is JobStatus.FINISHED
        assert read.is_finished
        latest = read.latest_result()
        assert latest.type is Result.Type.SUCCESSFUL
        assert latest.worker_name == "w1"
        assert len(latest.execution_id) == 32
        assert before - timedelta(seconds=1) < latest.execution_started_at <= latest.execution_ended_at
        assert latest.execution_ended_at <= datetime.now(UTC) + timedelta(seconds=1)
        assert [r.id for r in read.results()] == [latest.id]
        assert read.enqueued_at <= read.started_at <= read.ended_at
        assert read.return_value() is None
        assert read.get_executions() == []
    finished = FinishedJobRegistry("affine", connection=redis)
    assert set(finished.get_job_ids()) == {job.id for job in jobs}
    remaining = finished.get_expiration_time(read) - datetime.now(UTC)
    assert timedelta(seconds=480) < remaining <= timedelta(seconds=501)
    assert StartedJobRegistry("affine", connection=redis).count == 0
    assert Queue("affine", connection=redis).count == 0
    assert leftovers(redis) == {}


@on_redis_and_valkey
def test_a_failed_job_says_why_without_a_traceback(client: Client, redis: Redis, fleet: Workers) -> None:
    fleet.start("gather", "--name", "w1")
    job = client.submit("gather", {"index": np.array([99], np.int64)})
    with pytest.raises(JobFailed) as failure:
        job.result(timeout=10)
    assert failure.value.kind == "TileFailed"

    read = Job.fetch(job.id, connection=redis)
    assert read.get_status() is JobStatus.FAILED
    latest = read.latest_result()
    assert latest.type is Result.Type.FAILED
    assert (latest.worker_name, len(latest.execution_id)) == ("w1", 32)
    assert latest.exc_string.startswith("tensorq_engines.base.errors.TileFailed: model 'gather': ")
    assert "Traceback" not in latest.exc_string
    assert "idx=99" in latest.exc_string
    assert FailedJobRegistry("gather", connection=redis).get_job_ids() == [job.id]
    assert read.get_executions() == []
    assert leftovers(redis, "rq:wip:*", "rq:execution*", "rq:worker:*:executions") == {}


def test_a_job_that_does_not_fit_the_model_fails_alone(client: Client, redis: Redis, fleet: Workers) -> None:
    trusting = Client(redis, trust=True)
    fleet.start("free-axes")
    good = client.submit("free-axes", np.ones((1, 3, 4, 4), np.float32))
    bad = trusting.submit("free-axes", {"x": np.ones((1, 3, 4), np.float32)})
    assert good.result(timeout=10)["y"].shape == (1, 3)
    with pytest.raises(JobFailed) as failure:
        bad.result(timeout=10)
    assert failure.value.kind == "InputError"
    assert "Traceback" not in Job.fetch(bad.id, connection=redis).latest_result().exc_string


@on_redis_and_valkey
def test_the_worker_counts_its_jobs(client: Client, redis: Redis, fleet: Workers) -> None:
    fleet.start("affine", "gather", "--name", "w1")
    good = client.submit_many("affine", [X] * 3)
    bad = client.submit("gather", {"index": np.array([99], np.int64)})
    client.gather([*good, bad], timeout=10, return_errors=True)

    (worker,) = Worker.all(connection=redis)
    assert (worker.successful_job_count, worker.failed_job_count) == (3, 1)
    assert 0 < worker.total_working_time < 5


def test_working_time_is_not_counted_twice_for_tiles_that_wait_for_each_other(
    client: Client, redis: Redis, fleet: Workers
) -> None:
    fleet.start("nap", "--name", "w1")
    started = time.monotonic()
    jobs = [client.submit("nap", np.full((32, 1), 300, np.float32)) for _ in range(4)]
    client.gather(jobs, timeout=60)
    (worker,) = Worker.all(connection=redis)
    assert worker.total_working_time < time.monotonic() - started


def test_the_state_follows_the_work(client: Client, redis: Redis, fleet: Workers) -> None:
    fleet.start("affine", "--name", "w1")
    wait_until(lambda: _state(redis, "w1") == "idle", what="idle")
    client.submit("affine", X).result(timeout=10)
    wait_until(lambda: _state(redis, "w1") == "idle", what="idle again")


def test_a_producer_may_decode_responses(redis: Redis, fleet: Workers) -> None:
    fleet.start("affine")
    settings = redis.connection_pool.connection_kwargs | {"decode_responses": True}
    decoding = Redis(unix_socket_path=settings["path"], decode_responses=True)
    with Client(decoding) as client:
        assert client.submit("affine", X).result(timeout=10)["y"].tolist() == [[3] * 3] * 2
    decoding.close()


def _state(redis: Redis, name: str) -> str:
    return (redis.hget(f"rq:worker:{name}", "state") or b"").decode()
