"""A guard against drift of RQ's schema: what a tensorq job leaves, against what a stock job leaves."""

from __future__ import annotations

import numpy as np
import pytest
from redis import Redis
from rq import Queue, SimpleWorker

from fixtures.rqstate import text
from fixtures.servers import on_redis_and_valkey
from fixtures.workers import Workers, wait_until
from tensorq import Client, jobhash, keys

pytestmark = pytest.mark.integration

X = {"x": np.ones((2, 3), np.float32)}
# RQ writes these empty, and reads an absent field as empty.
ABSENT = {"group_id", "success_callback_name", "failure_callback_name", "stopped_callback_name"}
CLIENTS = ("tensorq:claim:", "tensorq:running:", "tensorq:done:")
ADDED = {
    *(jobhash.MODEL, jobhash.ROWS, jobhash.BYTES, jobhash.CLIENT, jobhash.AT_MS, jobhash.PLAIN),
    jobhash.EXECUTION,
}


def snapshot(redis: Redis, job_id: str) -> dict[str, str]:
    """Keys with the job's id as ID, and their types; less the workers' own and maintenance's lock."""
    return {
        key.decode().replace(job_id, "ID"): redis.type(key).decode()
        for key in redis.scan_iter("*")
        if not key.startswith((b"rq:worker:", b"rq:workers", b"rq:clean_groups"))
    }


def life(redis: Redis, name: str) -> str:
    left = redis.ttl(name)
    return "for ever" if left == -1 else f"{round(left, -1)} s"


def run_stock(redis: Redis, **options: object) -> str:
    job = Queue("affine", connection=redis).enqueue("fixtures.callbacks.nothing", **options)
    SimpleWorker(["affine"], connection=redis).work(burst=True)
    return job.id


@on_redis_and_valkey
def test_a_finished_job_leaves_what_a_stock_job_leaves(client: Client, redis: Redis, fleet: Workers) -> None:
    stock_id = run_stock(redis)
    stock = snapshot(redis, stock_id)
    stock_hash = text(redis.hgetall(keys.job(stock_id)))
    stock_life = {name: life(redis, name.replace("ID", stock_id)) for name in ("rq:job:ID", "rq:results:ID")}
    ((_, stock_result),) = redis.xrange(keys.results(stock_id))
    redis.flushall()

    worker = fleet.start("affine")
    job = client.submit("affine", X)
    job.result(timeout=10)
    assert worker.stop() == 0
    ours = snapshot(redis, job.id)
    ours_hash = text(redis.hgetall(keys.job(job.id)))
    ((_, ours_result),) = redis.xrange(keys.results(job.id))

    rqs = {name: kind for name, kind in ours.items() if name.startswith("rq:")}
    assert rqs == stock
    added = {name: kind for name, kind in ours.items() if name not in rqs}
    assert added == {
        "tensorq:result:ID": "string",
        "tensorq:input-bytes:affine": "string",
        "tensorq:model:affine": "string",
        "tensorq:models": "zset",
        "tensorq:stats:affine": "hash",
        "tensorq:wake": "stream",
        **{name: kind for name, kind in added.items() if name.startswith(CLIENTS)},
    }
    assert {name.split(":")[1] for name in added if name.startswith(CLIENTS)} <= {"claim", "running", "done"}

    assert set(ours_hash) - set(stock_hash) == ADDED
    assert set(stock_hash) - set(ours_hash) == ABSENT
    assert all(stock_hash[name] == "" for name in ABSENT)
    assert ours_hash["status"] == stock_hash["status"] == "finished"
    assert {name: life(redis, name.replace("ID", job.id)) for name in stock_life} == stock_life
    assert set(ours_result) == set(stock_result)
    assert ours_result[b"type"] == stock_result[b"type"]


@on_redis_and_valkey
def test_a_failed_job_leaves_what_a_stock_job_leaves(client: Client, redis: Redis, fleet: Workers) -> None:
    Queue("gather", connection=redis).enqueue("no.such.function", job_id="stock")
    SimpleWorker(["gather"], connection=redis).work(burst=True)
    stock, stock_hash = snapshot(redis, "stock"), text(redis.hgetall(keys.job("stock")))
    stock_life = {name: life(redis, name.replace("ID", "stock")) for name in ("rq:job:ID", "rq:results:ID")}
    ((_, stock_result),) = redis.xrange(keys.results("stock"))
    redis.flushall()

    worker = fleet.start("gather")
    job = client.submit("gather", {"index": np.array([99], np.int64)})
    wait_until(lambda: redis.zcard("rq:failed:gather") == 1, what="failed")
    assert worker.stop() == 0
    ours = {name: kind for name, kind in snapshot(redis, job.id).items() if name.startswith("rq:")}
    ours_hash = text(redis.hgetall(keys.job(job.id)))
    ((_, ours_result),) = redis.xrange(keys.results(job.id))

    assert ours == stock
    assert set(ours_hash) - set(stock_hash) == ADDED - {jobhash.EXECUTION, jobhash.PLAIN}
    assert set(stock_hash) - set(ours_hash) <= ABSENT
    assert {name: life(redis, name.replace("ID", job.id)) for name in stock_life} == stock_life
    assert set(ours_result) == set(stock_result)


@on_redis_and_valkey
def test_a_started_job_is_registered_as_a_stock_job_is(client: Client, redis: Redis, fleet: Workers) -> None:
    stock_id = Queue("patient", connection=redis).enqueue("fixtures.callbacks.nothing").id
    stock = SimpleWorker(["patient"], connection=redis)
    taken, _ = stock.dequeue_job_and_maintain_ttl(1)
    execution = stock.prepare_execution(taken)
    stock.prepare_job_execution(taken, True)
    wanted = _started(redis, stock_id, execution.id, stock.name)
    redis.flushall()

    fleet.start("patient", "--name", "w1")
    job = client.submit("patient", X)
    wait_until(lambda: redis.hget(keys.job(job.id), "status") == b"started", what="started")
    (token,) = redis.zrange(f"rq:executions:{job.id}", 0, -1)
    assert _started(redis, job.id, token.decode(), "w1") == wanted


def _started(redis: Redis, job_id: str, execution_id: str, worker: str) -> dict[str, object]:
    names = [
        f"rq:execution:{job_id}:{execution_id}",
        f"rq:executions:{job_id}",
        "rq:wip:patient",
        f"rq:worker:{worker}:executions",
    ]
    found: dict[str, object] = {}
    for name in names:
        shown = name.replace(job_id, "ID").replace(execution_id, "EX").replace(worker, "W")
        kind = redis.type(name).decode()
        if kind == "hash":
            found[shown] = {field.decode() for field in redis.hkeys(name)}
        elif kind == "zset":
            found[shown] = {
                m.decode().replace(job_id, "ID").replace(execution_id, "EX")
                for m in redis.zrange(name, 0, -1)
            }
        else:
            found[shown] = {
                m.decode().replace(job_id, "ID").replace(execution_id, "EX") for m in redis.smembers(name)
            }
        found[shown + " expires"] = redis.ttl(name) > 0
    fields = ("status", "worker_name", "started_at", "last_heartbeat")
    found["job"] = [bool(value) for value in redis.hmget(f"rq:job:{job_id}", fields)]
    found["job expires"] = redis.ttl(f"rq:job:{job_id}") > 0
    return found
