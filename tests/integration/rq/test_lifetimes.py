"""How long Redis keeps a job, its input and its result: RQ's ttl, result_ttl and timeout."""

from __future__ import annotations

import time

import numpy as np
import pytest
from redis import Redis
from rq import Callback
from rq.job import Job, JobStatus
from rq.registry import FinishedJobRegistry

from fixtures.rqstate import leftovers
from fixtures.servers import on_redis_and_valkey
from fixtures.workers import Workers, wait_until
from tensorq import Client, JobExpired, JobFailed, keys

pytestmark = pytest.mark.integration

X = {"x": np.ones((2, 3), np.float32)}
BIG = {"x": np.ones((2, 50_000), np.float32)}
CALLBACK = "fixtures.callbacks.succeeded"


def life(redis: Redis, job_id: str) -> dict[str, int]:
    names = {
        "job": keys.job(job_id),
        "results": keys.results(job_id),
        "result": keys.result(job_id),
    }
    return {name: redis.ttl(key) for name, key in names.items()}


def await_finished(redis: Redis, job_id: str) -> None:
    wait_until(lambda: redis.hget(keys.job(job_id), "status") == b"finished", what="finished")


@on_redis_and_valkey
@pytest.mark.parametrize("tensors", [X, BIG], ids=["inline", "staged"])
@pytest.mark.parametrize("path", ["hot", "slow"])
def test_the_result_ttl_is_that_of_everything(
    client: Client, redis: Redis, fleet: Workers, tensors: dict[str, np.ndarray], path: str
) -> None:
    fleet.start("affine", "--result-ttl", "70")
    options = {"on_success": Callback(CALLBACK)} if path == "slow" else {}
    jobs = {ttl: client.submit("affine", tensors, result_ttl=ttl, **options) for ttl in (30, -1, None)}
    for ttl, job in jobs.items():
        await_finished(redis, job.id)
        wanted = 70 if ttl is None else ttl
        for name, left in life(redis, job.id).items():
            assert left == wanted or wanted - 10 < left <= wanted, (ttl, name)
        score = redis.zscore("rq:finished:affine", job.id)
        assert score == float("inf") if ttl == -1 else abs(score - time.time() - wanted) < 10
        assert job.result(timeout=5)["y"].shape == tensors["x"].shape
    assert leftovers(redis) == {}


@on_redis_and_valkey
def test_a_result_ttl_of_0_leaves_nothing(client: Client, redis: Redis, fleet: Workers) -> None:
    fleet.start("affine", "--name", "w1")
    job = client.submit("affine", X, result_ttl=0)
    with pytest.raises(JobExpired):
        job.result(timeout=10)
    assert int(redis.hget("rq:worker:w1", "successful_job_count")) == 1
    assert list(redis.scan_iter(f"*{job.id}*")) == []
    assert FinishedJobRegistry("affine", connection=redis).count == 0
    assert leftovers(redis) == {}


def test_a_workers_result_ttl_of_0_leaves_nothing(client: Client, redis: Redis, fleet: Workers) -> None:
    fleet.start("affine", "--result-ttl", "0", "--name", "w1")
    job, kept = client.submit("affine", X), client.submit("affine", X, result_ttl=60)
    assert kept.result(timeout=10)
    with pytest.raises(JobExpired):
        job.result(timeout=10)
    assert list(redis.scan_iter(f"*{job.id}*")) == []
    assert leftovers(redis) == {}


def test_a_job_that_outlived_its_ttl_is_not_run(client: Client, redis: Redis, fleet: Workers) -> None:
    job, other = client.submit("affine", X, ttl=1), client.submit("affine", X)
    assert redis.ttl(keys.job(job.id)) == 1
    assert 600 < redis.ttl(keys.input(job.id)) <= 601
    time.sleep(1.1)
    fleet.start("affine")
    assert other.result(timeout=10)
    with pytest.raises(JobExpired):
        job.result(timeout=5)
    wait_until(lambda: leftovers(redis) == {}, what="no leftovers")


@on_redis_and_valkey
def test_a_claimed_job_does_not_expire(client: Client, redis: Redis, fleet: Workers) -> None:
    fleet.start("patient")
    job = client.submit("patient", X, ttl=2)
    wait_until(lambda: Job.fetch(job.id, connection=redis).is_started, what="started")
    assert redis.ttl(keys.job(job.id)) == -1
    assert redis.ttl(keys.input(job.id)) == -1
    time.sleep(2.1)
    assert Job.fetch(job.id, connection=redis).is_started


@on_redis_and_valkey
def test_a_job_over_its_timeout_fails_and_its_tile_mates_do_not(
    client: Client, redis: Redis, fleet: Workers
) -> None:
    jobs = [
        client.submit("nap", {"x": np.full((1, 1), 7000, np.float32)}, timeout=timeout)
        for timeout in (1, -1, 100)
    ]
    fleet.start("nap")
    late, forever, long = client.gather(jobs, timeout=30, return_errors=True)
    assert isinstance(late, JobFailed)
    assert late.kind == "DeadlineExceeded"
    assert "timeout is 1 s" in str(late)
    assert forever["y"].shape == long["y"].shape == (1, 1)
    assert Job.fetch(jobs[0].id, connection=redis).get_status() is JobStatus.FAILED


def test_waiting_behind_a_long_tile_is_not_running(client: Client, redis: Redis, fleet: Workers) -> None:
    fleet.start("nap", "affine")
    long = client.submit("nap", {"x": np.full((1, 1), 8000, np.float32)})
    wait_until(lambda: Job.fetch(long.id, connection=redis).is_started, what="started")
    assert client.submit("affine", X, timeout=1).result(timeout=20)
    assert long.result(timeout=1)
