"""A submitted job's hash against the one that RQ's own `Job` would store for the same options."""

from __future__ import annotations

import pickle
import zlib

import numpy as np
import pytest
from redis import Redis
from rq import Callback, Queue, Retry
from rq.job import Job
from rq.utils import str_to_date

from fixtures import callbacks
from tensorq import Client, jobhash

pytestmark = pytest.mark.integration

X = {"x": np.ones((2, 3), np.float32)}
# Empty until a worker writes them: RQ reads an absent field as an empty one.
EMPTY = {"started_at", "ended_at", "last_heartbeat", "worker_name", "group_id"}
STAMPS = {"created_at", "enqueued_at"}
OURS = {jobhash.MODEL, jobhash.ROWS, jobhash.BYTES, jobhash.CLIENT, jobhash.AT_MS}

OPTIONS = {
    "none": ({}, {}),
    "ttls": (
        {"ttl": 60, "result_ttl": 30, "failure_ttl": 90, "timeout": 7},
        {"ttl": 60, "result_ttl": 30, "failure_ttl": 90, "timeout": 7},
    ),
    "for ever": ({"result_ttl": -1, "timeout": -1}, {"result_ttl": -1, "timeout": -1}),
    "retry": (
        {"retry": Retry(max=3, interval=[1, 5], enqueue_at_front=True)},
        {"retries_left": 3, "retry_intervals": [1, 5], "enqueue_at_front_on_retry": True},
    ),
    "callbacks": (
        {
            "on_success": Callback(callbacks.succeeded, timeout=9),
            "on_failure": Callback(callbacks.failed),
            "on_stopped": Callback(callbacks.stopped),
        },
        {
            "on_success": Callback(callbacks.succeeded, timeout=9),
            "on_failure": Callback(callbacks.failed),
            "on_stopped": Callback(callbacks.stopped),
        },
    ),
    "description": ({"description": "night run"}, {"description": "night run"}),
}
# Those without an option that the worker must look up when it claims the job.
PLAIN = {"none", "retry", "description"}


def expected(redis: Redis, job_id: str, options: dict) -> dict[str, bytes]:
    """What RQ writes for the same job, in the form in which Redis returns it."""
    attributes = {n: options.pop(n) for n in list(options) if n.startswith(("retr", "enqueue"))}
    options = {"timeout": 180, "description": "affine", **options}
    job = Job.create(
        jobhash.STOCK_FUNCTION, ("affine",), id=job_id, origin="affine", connection=redis, **options
    )
    for name, value in attributes.items():
        setattr(job, name, value)
    queue = Queue("affine", connection=redis)
    queue._prepare_for_queue(job)
    job._status = "queued"
    redis.hset("test:expected", mapping=job.to_dict())
    return {name.decode(): value for name, value in redis.hgetall("test:expected").items()}


@pytest.mark.parametrize("name", OPTIONS)
def test_the_fields_are_rqs_own(client: Client, redis: Redis, name: str) -> None:
    ours, rqs = OPTIONS[name]
    job = client.submit("affine", X, **ours)
    stored = {field.decode(): value for field, value in redis.hgetall(f"rq:job:{job.id}").items()}
    wanted = expected(redis, job.id, dict(rqs))

    plain = {jobhash.PLAIN} if name in PLAIN else set()
    assert set(stored) - set(wanted) == OURS | plain
    missing = set(wanted) - set(stored)
    assert all(wanted[field] == b"" for field in missing)
    assert missing <= EMPTY | {f"{kind}_callback_name" for kind in ("success", "failure", "stopped")}
    for field in set(stored) & set(wanted) - STAMPS - {"data"}:
        assert stored[field] == wanted[field], field
    for field in STAMPS:
        assert len(stored[field]) == len(wanted[field])
        assert str_to_date(stored[field]) is not None
    # RQ compresses data and reads it either way.
    assert pickle.loads(stored["data"]) == pickle.loads(zlib.decompress(wanted["data"]))


def test_rq_reads_the_job_that_was_submitted(client: Client, redis: Redis) -> None:
    job = client.submit("affine", X, ttl=60, result_ttl=30, timeout=7, retry=2)
    read = Job.fetch(job.id, connection=redis)
    assert (read.func_name, read.args, read.kwargs) == (jobhash.STOCK_FUNCTION, ("affine",), {})
    assert (read.origin, read.description, read.timeout) == ("affine", "affine", 7)
    assert (read.ttl, read.result_ttl, read.failure_ttl, read.retries_left) == (60, 30, None, 2)
    assert read.get_status() == "queued"
    assert read.meta == {}
    assert read.get_position() == 0


def test_saving_the_job_with_rq_keeps_our_fields(client: Client, redis: Redis) -> None:
    job = client.submit("affine", X)
    before = redis.hgetall(f"rq:job:{job.id}")
    read = Job.fetch(job.id, connection=redis)
    read.meta["note"] = "by hand"
    read.save()
    after = redis.hgetall(f"rq:job:{job.id}")
    assert {f: after[f.encode()] for f in OURS} == {f: before[f.encode()] for f in OURS}


def test_a_deferred_job_has_the_same_fields(client: Client, redis: Redis) -> None:
    parent = client.submit("affine", X)
    child = client.submit("affine", X, depends_on=parent)
    fields = {field.decode() for field in redis.hgetall(f"rq:job:{child.id}")}
    assert fields >= OURS
    read = Job.fetch(child.id, connection=redis)
    assert read.get_status() == "deferred"
    assert [dep.id for dep in read.fetch_dependencies()] == [parent.id]
    assert Job.fetch(parent.id, connection=redis).dependent_ids == [child.id]
