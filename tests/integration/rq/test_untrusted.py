"""Job hashes that anybody may have written: nothing is unpickled, and none of them ends the worker."""

from __future__ import annotations

import json
import pickle
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from redis import Redis
from rq import Callback, Retry
from rq.job import Job

from fixtures.rqstate import leftovers
from fixtures.servers import on_redis_and_valkey
from fixtures.workers import Workers, wait_until
from tensorq import Client, JobFailed, ResultTimeout, jobhash, keys

pytestmark = pytest.mark.integration

X = {"x": np.ones((2, 3), np.float32)}
BAD = {"index": np.array([99], np.int64)}


class Trap:
    """Pickled: a call that makes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (self.path,)


@pytest.fixture
def trap(tmp_path: Path) -> tuple[bytes, Path]:
    """A pickle that makes a file, and the file."""
    path = tmp_path / "sprung"
    pickle.loads(pickle.dumps(Trap(path)))
    assert path.exists()
    path.unlink()
    return pickle.dumps(Trap(path)), path


@on_redis_and_valkey
def test_no_path_of_a_job_springs_a_trap(
    client: Client, redis: Redis, fleet: Workers, trap: tuple[bytes, Path]
) -> None:
    armed, sprung = trap
    jobs = {
        "hot": client.submit("affine", X),
        "callback": client.submit("affine", X, on_success=Callback("fixtures.callbacks.succeeded")),
        "failed": client.submit("gather", BAD),
        "retried": client.submit("gather", BAD, retry=1),
        "function": client.submit("affine", X),
    }
    jobs["dependent"] = client.submit("affine", X, depends_on=jobs["hot"])
    scheduled = client.submit("gather", BAD, retry=Retry(max=1, interval=1))
    for job in [*jobs.values(), scheduled]:
        fields = {"meta": armed, "data": zlib.compress(armed), "result": armed}
        redis.hset(keys.job(job.id), mapping=fields)
    redis.hdel(keys.job(jobs["function"].id), "tensorq_model")
    worker = fleet.start("affine", "gather", "--with-scheduler")
    outcomes = client.gather([*jobs.values(), scheduled], timeout=20, return_errors=True)
    assert [str(outcome) for outcome in outcomes if isinstance(outcome, ResultTimeout)] == []
    assert worker.stop() == 0
    assert not sprung.exists()
    # What a user keeps in meta is there still, on every path.
    for name, job in jobs.items():
        assert redis.hget(keys.job(job.id), "meta") == armed, name


def test_meta_of_the_user_stays_readable(client: Client, redis: Redis, fleet: Workers) -> None:
    jobs = [client.submit("affine", X), client.submit("gather", BAD), client.submit("gather", BAD, retry=1)]
    for job in jobs:
        read = Job.fetch(job.id, connection=redis)
        read.meta["night"] = {"run": 7}
        read.save_meta()
    fleet.start("affine", "gather")
    client.gather(jobs, timeout=10, return_errors=True)
    for job in jobs:
        assert Job.fetch(job.id, connection=redis).meta == {"night": {"run": 7}}


NONSENSE = b"\xff\x00 nonsense"
HASHES: dict[str, dict[str, Any]] = {
    "numbers": dict.fromkeys(
        ["timeout", "ttl", "result_ttl", "failure_ttl", "tensorq_rows", "tensorq_bytes", "tensorq_at_ms"],
        NONSENSE,
    ),
    "huge numbers": dict.fromkeys(["timeout", "result_ttl", "tensorq_rows", "tensorq_bytes"], 10**30),
    "negative": dict.fromkeys(["timeout", "result_ttl", "tensorq_rows", "tensorq_bytes"], -7),
    "infinite": dict.fromkeys(["timeout", "result_ttl", "tensorq_rows", "tensorq_bytes"], "inf"),
    "times": dict.fromkeys(["created_at", "enqueued_at", "started_at", "ended_at"], NONSENSE),
    "retries": {"retries_left": NONSENSE, "retry_intervals": NONSENSE, "number_of_retries": NONSENSE},
    "intervals": {"retries_left": 1, "retry_intervals": json.dumps("none")},
    "callbacks": {"success_callback_name": NONSENSE, "failure_callback_name": NONSENSE},
    "no such callback": {"failure_callback_name": "no.such.thing", "failure_callback_timeout": "x"},
    "webhooks": {"webhooks": NONSENSE},
    "repeats": {"repeats_left": NONSENSE, "repeat_intervals": NONSENSE},
    "dependencies": {"dependency_ids": NONSENSE, "dependency_id": NONSENSE},
    "client": {"tensorq_client": NONSENSE},
    "model": {"tensorq_model": NONSENSE},
    "another model": {"tensorq_model": "gather"},
    "origin": {"origin": NONSENSE},
    "data": {"data": NONSENSE},
    "suspect": {"tensorq_suspect": NONSENSE, "tensorq_crashes": NONSENSE, "tensorq_poison": NONSENSE},
    "group": {"group_id": NONSENSE},
    "rate limit": {"rate_limit_key": NONSENSE, "rate_limit_concurrency": NONSENSE},
    "deadline": {"tensorq_deadline_ms": NONSENSE},
}


@pytest.mark.parametrize("kind", ["succeeding", "failing", "function"])
def test_no_hash_ends_the_worker(client: Client, redis: Redis, fleet: Workers, kind: str) -> None:
    model = "gather" if kind == "failing" else "affine"
    jobs = {name: client.submit(model, BAD if kind == "failing" else X) for name in HASHES}
    for name, fields in HASHES.items():
        # Or the worker would not even look at most of them.
        redis.hdel(keys.job(jobs[name].id), jobhash.PLAIN)
        if kind == "function":
            redis.hdel(keys.job(jobs[name].id), jobhash.MODEL)
        redis.hset(keys.job(jobs[name].id), mapping=fields)
    worker = fleet.launch("affine", "gather", "--burst", "--allow-functions")
    assert worker.wait() == 0, worker.log
    for name, job in jobs.items():
        assert redis.hget(keys.job(job.id), "status") in (b"finished", b"failed"), name
    assert leftovers(redis, "rq:wip:*", "rq:execution*", "rq:worker:*:executions") == {}


@pytest.mark.parametrize("model", ["affine", "gather"])
def test_missing_fields_do_not_end_the_worker(
    client: Client, redis: Redis, fleet: Workers, model: str
) -> None:
    jobs = client.submit_many(model, [X if model == "affine" else BAD] * 20)
    fields = sorted(redis.hkeys(keys.job(jobs[0].id)))
    for job, field in zip(jobs, fields, strict=False):
        if field != b"status":
            redis.hdel(keys.job(job.id), field)
    worker = fleet.start("affine", "gather")
    wait_until(lambda: redis.llen(f"rq:queue:{model}") == 0, what="an empty queue")
    wait_until(lambda: redis.zcard(f"rq:wip:{model}") == 0, what="no job started")
    assert worker.process.poll() is None
    assert client.submit("affine", X).result(timeout=10)


def test_a_payload_that_is_none_fails_alone(client: Client, redis: Redis, fleet: Workers) -> None:
    jobs = client.submit_many("affine", [X] * 5)
    for job, payload in zip(jobs, (b"", b"\xc1", b"\x80", pickle.dumps(X)), strict=False):
        redis.set(keys.input(job.id), payload)
    fleet.start("affine")
    outcomes = client.gather(jobs, timeout=10, return_errors=True)
    assert [getattr(outcome, "kind", "") for outcome in outcomes[:4]] == [
        *("WireError", "WireError"),
        *("WireError", "WireError"),
    ]
    assert not isinstance(outcomes[4], JobFailed)


# Keys of a job that somebody made a string of.
IN_THE_WAY = ("rq:results:{}", "rq:job:{}:dependents", "rq:executions:{}", "rq:execution:{}:x")


def test_keys_of_another_type_are_in_the_way_of_their_job_alone(
    client: Client, redis: Redis, fleet: Workers
) -> None:
    bad = [client.submit("affine", X) for _ in IN_THE_WAY]
    good = client.submit_many("affine", [X] * 20)
    for job, key in zip(bad, IN_THE_WAY, strict=True):
        redis.set(key.format(job.id), "nonsense")
    redis.set("rq:queue:mlp", "nonsense")
    worker = fleet.start("affine", "mlp")
    assert len(client.gather(good, timeout=10)) == 20
    assert client.submit("affine", X).result(timeout=10)
    assert worker.stop() == 0
    # None of the others is lost: it has its result, or is held until the lease lapses.
    for job, key in zip(bad, IN_THE_WAY, strict=True):
        status = redis.hget(keys.job(job.id), "status")
        held = [member for member, _ in redis.zscan_iter("rq:wip:affine", f"{job.id}:*")]
        assert status == b"finished" or (status == b"started" and held), key


def test_an_id_that_is_no_text_is_dropped(client: Client, redis: Redis, fleet: Workers) -> None:
    job = client.submit("affine", X)
    redis.lpush("rq:queue:affine", b"\xff\xfe")
    redis.hset(b"rq:job:\xff\xfe", mapping={"status": "queued", "tensorq_model": "affine"})
    fleet.start("affine")
    assert job.result(timeout=10)
    assert redis.llen("rq:queue:affine") == 0
