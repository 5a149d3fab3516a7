"""A model's three queues: high before normal before low, unless a lower one has waited long enough."""

from __future__ import annotations

import time

import numpy as np
import pytest
from redis import Redis
from rq.job import Job

from fixtures.servers import on_redis_and_valkey
from fixtures.workers import Workers
from tensorq import Client, jobhash, keys

pytestmark = pytest.mark.integration

X = {"x": np.ones((1, 3), np.float32)}


def started_order(redis: Redis, jobs: dict[str, list]) -> list[str]:
    """Priorities in the order in which their jobs were claimed."""
    ends = {
        (Job.fetch(job.id, connection=redis).started_at, name)
        for name, those in jobs.items()
        for job in those
    }
    return list(dict.fromkeys(name for _, name in sorted(ends)))


@on_redis_and_valkey
def test_high_goes_before_normal_before_low(client: Client, redis: Redis, fleet: Workers) -> None:
    jobs = {
        level: client.submit_many("affine", [X] * 64, priority=level) for level in ("low", "normal", "high")
    }
    fleet.launch("affine", "--burst", "--prefetch-tiles", "2").wait()
    assert started_order(redis, jobs) == ["high", "normal", "low"]


def test_a_lower_priority_that_has_waited_long_goes_first(
    client: Client, redis: Redis, fleet: Workers
) -> None:
    jobs = {level: client.submit_many("affine", [X] * 64, priority=level) for level in ("low", "high")}
    minutes_ago = int(time.time() * 1000) - 130_000
    for job in jobs["low"]:
        redis.hset(keys.job(job.id), jobhash.AT_MS, minutes_ago)
    # A level is worth a minute of waiting, and low is two below high.
    fleet.launch("affine", "--burst").wait()
    assert started_order(redis, jobs) == ["low", "high"]


def test_the_worth_of_a_level_is_a_setting(client: Client, redis: Redis, fleet: Workers) -> None:
    jobs = {level: client.submit_many("affine", [X] * 64, priority=level) for level in ("low", "high")}
    for job in jobs["low"]:
        redis.hset(keys.job(job.id), jobhash.AT_MS, int(time.time() * 1000) - 130_000)
    fleet.launch("affine", "--burst", TENSORQ_AGING_S="600").wait()
    assert started_order(redis, jobs) == ["high", "low"]


def test_at_front_goes_first_in_its_queue(client: Client, redis: Redis, fleet: Workers) -> None:
    jobs = client.submit_many("affine", [X] * 3)
    first = client.submit("affine", X, at_front=True)
    fleet.launch("affine", "--burst", "--max-jobs", "1").wait()
    assert Job.fetch(first.id, connection=redis).is_finished
    assert all(Job.fetch(job.id, connection=redis).is_queued for job in jobs)
