"""RQ's command line tools and worker commands beside a tensorq worker."""

from __future__ import annotations

import time

import numpy as np
import pytest
from redis import Redis
from rq import Worker
from rq.command import send_kill_horse_command, send_shutdown_command
from rq.job import Job

from fixtures.rqstate import leftovers
from fixtures.servers import on_redis_and_valkey
from fixtures.workers import Workers, wait_until
from tensorq import Client

pytestmark = pytest.mark.integration

X = {"x": np.ones((2, 3), np.float32)}


@on_redis_and_valkey
def test_rq_info_shows_queues_and_workers(client: Client, redis: Redis, fleet: Workers) -> None:
    worker = fleet.start("patient", "affine", "--name", "w1")
    waiting = client.submit("patient", X)
    client.submit("affine", X).result(timeout=10)
    wait_until(lambda: Job.fetch(waiting.id, connection=redis).is_started, what="started")

    during = fleet.rq_tool("info", "--raw")
    assert "worker w1" in during
    assert "busy" in during
    assert "queue patient 0" in during
    assert "patient@high" in during.splitlines()[-1]
    # Its look at the registries leaves our leases alone.
    assert Job.fetch(waiting.id, connection=redis).is_started
    assert "1 workers" in fleet.rq_tool("info")

    waiting.cancel()
    worker.stop()
    assert "0 workers" in fleet.rq_tool("info")


@on_redis_and_valkey
def test_a_suspended_worker_claims_nothing_until_resumed(
    client: Client, redis: Redis, fleet: Workers
) -> None:
    worker = fleet.start("affine", "--name", "w1")
    fleet.rq_tool("suspend")
    wait_until(lambda: "suspended" in worker.log, what="suspended")
    job = client.submit("affine", X)
    time.sleep(1.2)
    assert Job.fetch(job.id, connection=redis).is_queued
    assert redis.hget("rq:worker:w1", "state") == b"suspended"
    fleet.rq_tool("resume")
    assert job.result(timeout=10)
    wait_until(lambda: redis.hget("rq:worker:w1", "state") == b"idle", what="idle")


def test_a_suspended_worker_finishes_what_it_holds(client: Client, redis: Redis, fleet: Workers) -> None:
    worker = fleet.start("nap")
    job = client.submit("nap", np.full((1, 1), 8000, np.float32))
    wait_until(lambda: Job.fetch(job.id, connection=redis).is_started, what="started")
    fleet.rq_tool("suspend")
    assert job.result(timeout=20)
    assert worker.process.poll() is None


def test_a_burst_worker_that_is_suspended_ends(client: Client, redis: Redis, fleet: Workers) -> None:
    fleet.rq_tool("suspend")
    job = client.submit("affine", X)
    assert fleet.launch("affine", "--burst").wait() == 0
    assert Job.fetch(job.id, connection=redis).is_queued


@on_redis_and_valkey
def test_the_shutdown_command_ends_the_worker_warm(client: Client, redis: Redis, fleet: Workers) -> None:
    worker = fleet.start("nap", "--name", "w1")
    job = client.submit("nap", np.full((1, 1), 4000, np.float32))
    wait_until(lambda: Job.fetch(job.id, connection=redis).is_started, what="started")
    send_shutdown_command(redis, "w1")
    assert worker.wait() == 0
    assert Job.fetch(job.id, connection=redis).is_finished
    assert Worker.all(connection=redis) == []
    assert leftovers(redis) == {}


def test_a_warm_stop_finishes_what_waits_for_company(client: Client, redis: Redis, fleet: Workers) -> None:
    worker = fleet.start("patient")
    job = client.submit("patient", X)
    wait_until(lambda: Job.fetch(job.id, connection=redis).is_started, what="started")
    assert worker.stop() == 0
    assert Job.fetch(job.id, connection=redis).is_finished
    assert leftovers(redis) == {}


def test_the_kill_horse_command_is_ignored(client: Client, redis: Redis, fleet: Workers) -> None:
    worker = fleet.start("affine", "--name", "w1")
    send_kill_horse_command(redis, "w1")
    wait_until(lambda: "ignored" in worker.log, what="the note")
    assert client.submit("affine", X).result(timeout=10)


def test_an_unreadable_command_does_not_end_the_listening(
    client: Client, redis: Redis, fleet: Workers
) -> None:
    worker = fleet.start("affine", "--name", "w1")
    for text in (b"not json", b"[1]", b"{}", b'"stop-job"'):
        redis.publish("rq:pubsub:w1", text)
    send_shutdown_command(redis, "w1")
    assert worker.wait() == 0


def test_a_name_that_is_taken_is_a_clear_error(client: Client, fleet: Workers) -> None:
    fleet.start("affine", "--name", "w1")
    second = fleet.launch("affine", "--name", "w1")
    assert second.wait() == 78
    assert "already" in second.log
    assert "Traceback" not in second.log
