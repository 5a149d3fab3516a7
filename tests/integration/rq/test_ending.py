"""When workers end by themselves, and how several share the work."""

from __future__ import annotations

import signal
import time

import numpy as np
import pytest
from redis import Redis
from rq import Queue, Worker
from rq.job import Job

from fixtures.rqstate import leftovers
from fixtures.servers import on_redis_and_valkey
from fixtures.workers import Workers, wait_until
from tensorq import Client, keys

pytestmark = pytest.mark.integration

X = {"x": np.ones((2, 3), np.float32)}


def statuses(redis: Redis, jobs: list) -> set[str]:
    return {job.get_status().value for job in Job.fetch_many([j.id for j in jobs], connection=redis)}


@on_redis_and_valkey
def test_burst_ends_when_all_is_done(client: Client, redis: Redis, fleet: Workers) -> None:
    jobs = client.submit_many("affine", [X] * 150)
    assert fleet.launch("affine", "mlp", "--burst").wait() == 0
    assert statuses(redis, jobs) == {"finished"}
    assert leftovers(redis) == {}


def test_burst_with_nothing_to_do_ends(fleet: Workers) -> None:
    assert fleet.launch("affine", "--burst").wait() == 0


@pytest.mark.parametrize("count", [1, 7, 40])
def test_max_jobs_is_exact(client: Client, redis: Redis, fleet: Workers, count: int) -> None:
    jobs = client.submit_many("affine", [X] * 50)
    assert fleet.launch("affine", "mlp", "--max-jobs", str(count)).wait() == 0
    done = [job for job in jobs if Job.fetch(job.id, connection=redis).is_finished]
    assert done == jobs[:count]
    assert Queue("affine", connection=redis).count == 50 - count
    assert leftovers(redis, "rq:wip:*", "rq:execution*", "rq:worker:*:executions") == {}


def test_max_idle_time_counts_from_the_last_job(client: Client, fleet: Workers) -> None:
    worker = fleet.start("affine", "--max-idle-time", "2")
    time.sleep(1)
    assert client.submit("affine", X).result(timeout=5)
    ended = time.monotonic()
    assert worker.wait() == 0
    assert 1.8 < time.monotonic() - ended < 6
    assert "idle for 2 seconds" in worker.log


def test_rqs_command_line_ends_the_same(client: Client, redis: Redis, fleet: Workers) -> None:
    jobs = client.submit_many("affine", [X] * 5)
    assert fleet.rq("worker", "affine", "--burst", "--max-jobs", "3").wait() == 0
    assert Queue("affine", connection=redis).job_ids == [job.id for job in jobs[3:]]
    assert fleet.rq("worker", "affine", "--max-idle-time", "1").wait() == 0
    assert statuses(redis, jobs) == {"finished"}


@on_redis_and_valkey
def test_two_workers_share_a_queue_and_run_no_job_twice(client: Client, redis: Redis, fleet: Workers) -> None:
    for name in ("w1", "w2"):
        fleet.start("nap", "--name", name)
    jobs = client.submit_many("nap", [{"x": np.full((1, 1), 100, np.float32)}] * 300)
    client.gather(jobs, timeout=60)
    done = [Job.fetch(job.id, connection=redis).results() for job in jobs]
    assert all(len(results) == 1 for results in done)
    by_worker = [results[0].worker_name for results in done]
    counts = {worker.name: worker.successful_job_count for worker in Worker.all(connection=redis)}
    assert counts == {"w1": by_worker.count("w1"), "w2": by_worker.count("w2")}
    assert min(counts.values()) > 0
    assert int(redis.hget("tensorq:stats:nap", "jobs")) == 300
    assert leftovers(redis) == {}


@on_redis_and_valkey
def test_a_worker_pool_serves_and_stops(client: Client, redis: Redis, fleet: Workers) -> None:
    pool = fleet.rq("worker-pool", "affine", "-n", "2").wait_ready(2)
    assert len(Worker.all(connection=redis)) == 2
    jobs = client.submit_many("affine", [X] * 50)
    client.gather(jobs, timeout=20)
    assert pool.stop() == 0
    assert Worker.all(connection=redis) == []
    assert pool.log.count(": done, quitting") == 2
    assert "Traceback" not in pool.log
    assert leftovers(redis) == {}


def test_a_worker_pool_in_burst_mode_ends(client: Client, redis: Redis, fleet: Workers) -> None:
    jobs = client.submit_many("affine", [X] * 50)
    assert fleet.rq("worker-pool", "affine", "-n", "2", "--burst").wait() == 0
    assert statuses(redis, jobs) == {"finished"}


def test_a_second_signal_hands_back(client: Client, redis: Redis, fleet: Workers) -> None:
    worker = fleet.start("nap")
    running = client.submit("nap", {"x": np.full((1, 1), 60_000, np.float32)})
    wait_until(lambda: Job.fetch(running.id, connection=redis).is_started, what="started")
    worker.process.send_signal(signal.SIGINT)
    time.sleep(1.1)
    assert worker.stop(signal.SIGINT) == 0
    read = Job.fetch(running.id, connection=redis)
    assert read.is_queued
    assert read.get_position() == 0
    assert redis.exists(keys.input(running.id))
    assert leftovers(redis, "rq:wip:*", "rq:execution*", "rq:worker:*:executions") == {}
