"""A job that somebody read while it waited and saves after it was claimed: its hash says queued again."""

from __future__ import annotations

import pytest
from redis import Redis
from rq import SimpleWorker
from rq.job import Job

from fixtures import leased
from fixtures.leased import MODEL, claim, done, field, finish, store
from tensorq_worker.broker import Broker, Claimed
from tensorq_worker.leases import Leases
from tensorq_worker.redisrq import SlowPath


@pytest.fixture
def saved(redis: Redis, broker: Broker) -> Claimed:
    """The lease on such a job."""
    store(redis, ["job"])
    read = Job.fetch("job", connection=redis)
    (job,) = claim(broker)
    read.description = "mine"
    read.save()
    assert (field(redis, "job", "status"), field(redis, "job", "worker_name")) == ("queued", "")
    return job


def test_it_finishes(redis: Redis, broker: Broker, saved: Claimed) -> None:
    assert finish(broker, done([saved])) == ["FINISHED"]
    assert field(redis, "job", "status") == "finished"


def test_it_fails(redis: Redis, saved: Claimed) -> None:
    leases = Leases()
    leases.add([saved])
    worker = SimpleWorker([MODEL], connection=redis, name="worker-a")
    SlowPath(worker, redis, leases, 500).fail(saved, ValueError("no"))
    assert field(redis, "job", "status") == "failed"
    assert leased.leased(redis) == leases.all() == []


def test_it_can_be_given_back(redis: Redis, broker: Broker, saved: Claimed) -> None:
    assert broker.give_back([saved]) == 1
    assert leased.waiting(redis) == ["job"]
    assert leased.leased(redis) == []


def test_it_comes_back_as_a_suspect_when_its_worker_dies(
    redis: Redis, broker: Broker, saved: Claimed
) -> None:
    broker.mark_running("0:0", ["job"])
    leased.lapse(redis)
    assert broker.reap([MODEL], crash_cap=3) == [("job", MODEL, "suspect")]
    assert [job.job_id for job in claim(broker)] == ["job"]
