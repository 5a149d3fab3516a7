"""What RQ's handlers store, stored once: failures, retries and callbacks over a lossy connection."""

from collections.abc import Callable

import numpy as np
import pytest
from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError
from redis.retry import Retry as Retries
from rq import Callback, Retry, SimpleWorker
from rq.job import Job

from fixtures import leased
from fixtures.leased import MODEL, claim, field, store
from fixtures.proxy import Proxy, commits
from fixtures.rqstate import leftovers
from tensorq import keys
from tensorq.errors import RedisUnavailable
from tensorq.jobhash import JobOptions
from tensorq_worker.broker import Broker, Claimed
from tensorq_worker.leases import Leases
from tensorq_worker.redisrq import SlowPath

LOST = pytest.mark.parametrize("lost", ["lose_reply", "lose_request"])
FAILURE = commits("XADD", "rq:results:")
END = commits("ZREM", "rq:wip:")

Holder = Callable[[JobOptions], tuple[SlowPath, Leases, Claimed]]


def succeeded(job: Job, connection: Redis, result: object) -> None:
    connection.rpush("succeeded", job.id)


def broken(job: Job, connection: Redis, result: object) -> None:
    raise ValueError("a callback's own mistake")


@pytest.fixture
def holder(redis: Redis, proxy: Proxy) -> Holder:
    """Claims one job behind the proxy and gives what can end it."""

    def hold(options: JobOptions) -> tuple[SlowPath, Leases, Claimed]:
        store(redis, ["job"], options=options, client="c")
        connection = proxy.client()
        worker = SimpleWorker([MODEL], connection=connection, name="worker-a")
        leases = Leases()
        (job,) = claim(Broker(connection, "worker-a"))
        leases.add([job])
        return SlowPath(worker, connection, leases, 500), leases, job

    return hold


def until_stored(act: Callable[[], None]) -> None:
    """As the loop does: what Redis interrupted is done again."""
    for _ in range(3):
        try:
            act()
            return
        except RedisUnavailable:
            continue
    raise AssertionError("not stored after three times")


@LOST
def test_a_failure_is_stored_once(redis: Redis, proxy: Proxy, holder: Holder, lost: str) -> None:
    slow, leases, job = holder(JobOptions())
    rule = getattr(proxy, lost)(FAILURE)
    until_stored(lambda: slow.fail(job, ValueError("no")))
    assert rule.done == 1
    assert field(redis, "job", "status") == "failed"
    assert redis.xlen(keys.results("job")) == 1
    assert redis.zcard(f"rq:failed:{MODEL}") == 1
    assert redis.hget(keys.WORKER + "worker-a", "failed_job_count") == b"1"
    assert redis.lrange(keys.done("c"), 0, -1) == [b"job"]
    assert redis.ttl(keys.input("job")) > 0
    assert leased.leased(redis) == leases.all() == []


@LOST
@pytest.mark.parametrize("interval_s", [0, 60])
def test_a_retry_is_charged_once(
    redis: Redis, proxy: Proxy, holder: Holder, lost: str, interval_s: int
) -> None:
    slow, leases, job = holder(JobOptions(retry=Retry(max=3, interval=interval_s)))
    rule = getattr(proxy, lost)(END)
    until_stored(lambda: slow.fail(job, ValueError("no")))
    assert rule.done == 1
    assert field(redis, "job", "retries_left") == "2"
    assert field(redis, "job", "status") == ("scheduled" if interval_s else "queued")
    assert leased.waiting(redis) == ([] if interval_s else ["job"])
    assert redis.zcard(f"rq:scheduled:{MODEL}") == (1 if interval_s else 0)
    assert redis.xlen(keys.results("job")) == 0
    assert redis.ttl(keys.input("job")) == -1
    assert leased.leased(redis) == leases.all() == []


@LOST
@pytest.mark.parametrize("step", [FAILURE, lambda sent: sent.name == "WATCH"])
def test_a_success_with_a_callback_is_stored_once(
    redis: Redis, proxy: Proxy, holder: Holder, lost: str, step
) -> None:
    slow, leases, job = holder(JobOptions(on_success=Callback(succeeded)))
    rule = getattr(proxy, lost)(step)
    until_stored(lambda: slow.succeed(job, {"y": np.zeros(1)}, b"packed"))
    assert rule.done == 1
    assert field(redis, "job", "status") == "finished"
    assert redis.get(keys.result("job")) == b"packed"
    assert redis.xlen(keys.results("job")) == 1
    assert redis.lrange(keys.done("c"), 0, -1) == [b"job"]
    assert redis.hget(keys.WORKER + "worker-a", "successful_job_count") == b"1"
    assert int(redis.get(keys.input_bytes(MODEL))) == 0
    assert leased.leased(redis) == leases.all() == []


@pytest.mark.parametrize("step", ["ZSCORE", "HGETALL"])
def test_a_connection_that_breaks_fails_no_job_and_spoils_none(
    redis: Redis, proxy: Proxy, holder: Holder, step: str
) -> None:
    slow, leases, job = holder(JobOptions(on_success=Callback(succeeded), retry=Retry(max=3)))
    slow._redis.set_retry(Retries(NoBackoff(), 0))
    proxy.lose_request(lambda sent: sent.name == step)
    before = leased.snapshot(redis)
    with pytest.raises(ConnectionError):
        slow.succeed(job, {"y": np.zeros(1)}, b"packed")
    assert leased.snapshot(redis) == before
    assert leases.all() == [job]
    slow.succeed(job, {"y": np.zeros(1)}, b"packed")
    assert field(redis, "job", "status") == "finished"


def test_a_callback_that_raises_fails_its_job(redis: Redis, holder: Holder) -> None:
    slow, _, job = holder(JobOptions(on_success=Callback(broken)))
    slow.succeed(job, {"y": np.zeros(1)}, b"packed")
    assert field(redis, "job", "status") == "failed"
    assert not redis.exists(keys.result("job"))


@pytest.mark.parametrize("act", ["fail", "succeed", "stop"])
def test_a_job_that_another_worker_has_is_left_alone(redis, holder, other, act: str) -> None:
    slow, leases, job = holder(JobOptions())
    leased.lapse(redis)
    other.reap([MODEL], crash_cap=3)
    claim(other)
    before = leased.snapshot(redis)
    {
        "fail": lambda: slow.fail(job, ValueError("no")),
        "succeed": lambda: slow.succeed(job, {"y": np.zeros(1)}, b"packed"),
        "stop": lambda: slow.stop(job),
    }[act]()
    assert leased.snapshot(redis) == before
    assert leases.all() == []


@pytest.mark.parametrize("act", ["fail", "succeed", "stop"])
@pytest.mark.parametrize("gone", ["cancel", "delete"])
def test_a_job_that_is_gone_by_then_leaves_nothing(redis: Redis, holder: Holder, gone: str, act: str) -> None:
    slow, leases, job = holder(JobOptions())
    getattr(Job.fetch("job", connection=redis), gone)()
    {
        "fail": lambda: slow.fail(job, ValueError("no")),
        "succeed": lambda: slow.succeed(job, {"y": np.zeros(1)}, b"packed"),
        "stop": lambda: slow.stop(job),
    }[act]()
    assert leases.all() == []
    assert leftovers(redis) == {}
