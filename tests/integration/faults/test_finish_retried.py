"""A finish that is repeated, late or refused changes nothing that was stored before."""

import pytest
from redis import Redis
from rq.job import Job

from fixtures import leased
from fixtures.leased import LARGE, MODEL, SMALL, claim, done, field, finish, snapshot, store
from fixtures.proxy import Proxy, calls
from tensorq import keys
from tensorq_worker.broker import Broker
from tensorq_worker.broker.broker import FINISH

IDS = [f"job-{n}" for n in range(6)]


@pytest.mark.parametrize("elements", [SMALL, LARGE])
@pytest.mark.parametrize("lost", ["lose_reply", "lose_request"])
def test_a_retried_finish_stores_each_result_once(
    redis: Redis, proxy: Proxy, broker: Broker, lost: str, elements: int
) -> None:
    store(redis, IDS, client="c")
    claimed = claim(broker)
    rule = getattr(proxy, lost)(calls(FINISH))
    assert set(finish(broker, done(claimed, elements))) == {
        "REPEATED" if lost == "lose_reply" else "FINISHED"
    }
    assert rule.done == 1
    for n, job in enumerate(claimed):
        assert redis.get(keys.result(job.job_id)) == leased.packed(n, elements)
        assert 400 < redis.ttl(keys.result(job.job_id)) <= 500
        assert redis.xlen(keys.results(job.job_id)) == 1
        assert field(redis, job.job_id, "status") == "finished"
    assert leased.leased(redis) == []
    assert redis.llen(keys.done("c")) == len(IDS)
    assert int(redis.hget(keys.WORKER + "worker-a", "successful_job_count")) == len(IDS)
    assert redis.hgetall(keys.stats(MODEL)) == {
        b"jobs": b"6",
        b"tiles": b"1",
        b"padding": b"2",
        b"rows": b"6",
    }
    assert int(redis.get(keys.input_bytes(MODEL))) == 0
    assert redis.hlen(keys.inputs(MODEL)) == 0
    assert (
        redis.keys(keys.STAGED + "*")
        == redis.keys(keys.INPUT + "*")
        == redis.keys(keys.EXECUTION + "*")
        == []
    )


@pytest.mark.parametrize("elements", [SMALL, LARGE])
def test_a_repeat_changes_nothing(redis: Redis, broker: Broker, elements: int) -> None:
    store(redis, IDS, client="c")
    claimed = claim(broker)
    assert finish(broker, done(claimed, elements)) == ["FINISHED"] * 6
    before = snapshot(redis)
    assert finish(broker, done(claimed, elements)) == ["REPEATED"] * 6
    assert snapshot(redis) == before


@pytest.mark.parametrize("elements", [SMALL, LARGE])
def test_a_late_finish_is_lost_once_the_job_waits_again(redis, broker, other, elements: int) -> None:
    store(redis, IDS)
    late = claim(broker)
    leased.lapse(redis)
    other.reap([MODEL], crash_cap=3)
    before = snapshot(redis)
    assert finish(broker, done(late, elements)) == ["LOST"] * 6
    assert unchanged_jobs(before, snapshot(redis))
    assert redis.keys(keys.STAGED + "*") == []


@pytest.mark.parametrize("elements", [SMALL, LARGE])
def test_a_late_finish_is_lost_while_another_worker_runs_the_job(redis, broker, other, elements: int) -> None:
    store(redis, IDS)
    late = claim(broker)
    leased.lapse(redis)
    other.reap([MODEL], crash_cap=3)
    theirs = claim(other)
    before = snapshot(redis)
    assert finish(broker, done(late, elements)) == ["LOST"] * 6
    assert unchanged_jobs(before, snapshot(redis))
    assert finish(other, done(theirs)) == ["FINISHED"] * 6


def test_a_late_finish_is_lost_after_another_worker_finished_the_job(redis, broker, other) -> None:
    store(redis, IDS)
    late = claim(broker)
    leased.lapse(redis)
    other.reap([MODEL], crash_cap=3)
    finish(other, done(claim(other)))
    before = snapshot(redis)
    assert finish(broker, done(late[::-1])) == ["LOST"] * 6
    assert unchanged_jobs(before, snapshot(redis))


def test_a_late_finish_leaves_a_job_that_failed_elsewhere_its_input(redis, broker, other) -> None:
    store(redis, IDS)
    late = claim(broker)
    leased.lapse(redis)
    other.reap([MODEL], crash_cap=3)
    claim(other)
    for job_id in IDS:  # as the slow path does
        redis.hset(keys.job(job_id), "status", "failed")
    redis.delete(keys.wip(MODEL))
    assert finish(broker, done(late)) == ["LOST"] * 6
    assert redis.exists(*map(keys.input, IDS)) == 6


def test_a_cancelled_job_drops_its_result_and_its_input(redis, broker) -> None:
    store(redis, IDS)
    claimed = claim(broker)
    Job.fetch(IDS[0], connection=redis).cancel()
    assert finish(broker, done(claimed)) == ["CANCELLED"] + ["FINISHED"] * 5
    assert not redis.exists(keys.result(IDS[0]), keys.input(IDS[0]), keys.results(IDS[0]))
    assert int(redis.get(keys.input_bytes(MODEL))) == 0


def test_large_results_get_out_under_maxmemory(redis, broker) -> None:
    store(redis, IDS)
    claimed = claim(broker)
    results = done(claimed[:3], SMALL) + done(claimed[3:], LARGE)
    redis.config_set("maxmemory", 1)
    try:
        assert finish(broker, results) == ["FINISHED"] * 6
    finally:
        redis.config_set("maxmemory", 0)
    for n, job in enumerate(claimed[3:]):
        assert redis.get(keys.result(job.job_id)) == leased.packed(n, LARGE)
    assert {redis.xlen(keys.results(job_id)) for job_id in IDS} == {1}
    assert redis.hgetall(keys.stats(MODEL)) == {
        b"jobs": b"6",
        b"tiles": b"1",
        b"padding": b"2",
        b"rows": b"6",
    }


def unchanged_jobs(before: dict[bytes, object], after: dict[bytes, object]) -> bool:
    """Whether nothing but the model's counters of tiles differs."""
    for found in (before, after):
        found.pop(keys.stats(MODEL).encode(), None)
    return before == after
