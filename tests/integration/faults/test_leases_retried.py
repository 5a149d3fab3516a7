"""Beats, give-backs, reaping and sweeping: repeated, late, and under maxmemory."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from redis import Redis
from redis.exceptions import OutOfMemoryError
from rq.job import Job
from rq.registry import StartedJobRegistry

from fixtures import leased
from fixtures.leased import LARGE, MODEL, claim, done, field, finish, snapshot, store
from fixtures.proxy import Proxy, calls
from tensorq import keys
from tensorq.jobhash import JobOptions
from tensorq_worker.broker import Broker
from tensorq_worker.broker.broker import BEAT, GIVE_BACK, REAP, SWEEP

IDS = [f"job-{n}" for n in range(6)]
LOST = pytest.mark.parametrize("lost", ["lose_reply", "lose_request"])


@contextmanager
def no_memory(redis: Redis) -> Iterator[None]:
    redis.config_set("maxmemory", 1)
    try:
        yield
    finally:
        redis.config_set("maxmemory", 0)


@LOST
def test_a_retried_beat_renews_and_loses_nothing(
    redis: Redis, proxy: Proxy, broker: Broker, lost: str
) -> None:
    store(redis, IDS)
    claimed = claim(broker)
    leased.lapse(redis)
    getattr(proxy, lost)(calls(BEAT))
    assert broker.beat(claimed, 480) == (False, [])
    assert broker.reap([MODEL], crash_cap=3) == []
    assert all(
        score > keys.LEASE_OFFSET for _, score in redis.zrange(keys.wip(MODEL), 0, -1, withscores=True)
    )


def test_a_beat_names_what_others_have_and_revives_nothing(
    redis: Redis, broker: Broker, other: Broker
) -> None:
    store(redis, IDS)
    claimed = claim(broker)
    finish(broker, done(claimed[:1]))
    leased.lapse(redis)
    other.reap([MODEL], crash_cap=3)
    claim(other, 2)
    redis.delete(keys.job(IDS[5]))
    before = snapshot(redis)
    assert broker.beat(claimed, 480)[1] == IDS[1:]
    assert snapshot(redis) == before


@LOST
def test_a_retried_give_back_puts_each_job_back_once(redis, proxy, broker, lost: str) -> None:
    store(redis, IDS, options=JobOptions(ttl_s=100))
    claimed = claim(broker, 4)
    getattr(proxy, lost)(calls(GIVE_BACK))
    broker.give_back(claimed)
    assert leased.waiting(redis) == IDS
    assert leased.leased(redis) == []
    assert {field(redis, job_id, "status") for job_id in IDS} == {"queued"}
    assert 90 < redis.ttl(keys.job(IDS[0])) <= 100
    assert redis.keys(keys.EXECUTION + "*") == redis.keys(keys.EXECUTIONS + "*") == []


def test_a_late_give_back_leaves_another_workers_lease_as_it_is(redis, broker, other) -> None:
    store(redis, IDS)
    late = claim(broker)
    leased.lapse(redis)
    other.reap([MODEL], crash_cap=3)
    theirs = claim(other)
    before = snapshot(redis)
    assert broker.give_back(late) == 0
    assert snapshot(redis) == before
    Job.fetch(IDS[0], connection=redis).cancel()  # which finds the lease by the job's executions
    assert finish(other, done(theirs)) == ["CANCELLED"] + ["FINISHED"] * 5


@LOST
def test_a_retried_reap_gives_back_once_and_counts_a_crash_once(redis, proxy, broker, lost: str) -> None:
    store(redis, IDS)
    broker.mark_running("0:0", [job.job_id for job in claim(broker)][:2])
    leased.lapse(redis)
    rule = getattr(proxy, lost)(calls(REAP))
    broker.reap([MODEL], crash_cap=3)
    assert rule.done == 1
    assert leased.waiting(redis) == IDS
    assert [field(redis, job_id, "tensorq_suspect") for job_id in IDS] == ["1", "1"] + [None] * 4
    assert [field(redis, job_id, "tensorq_crashes") for job_id in IDS[:2]] == ["0", "0"]


def test_only_crashes_while_alone_count_and_the_cap_makes_a_poison_job(redis, broker) -> None:
    store(redis, IDS[:2])
    words = []
    for _ in range(4):
        claimed = claim(broker)
        broker.mark_running("0:0", [claimed[0].job_id])
        leased.lapse(redis)
        words.append([word for _, _, word in broker.reap([MODEL], crash_cap=3)])
    # From the second time on the suspect is claimed alone.
    assert words == [["returned", "suspect"], ["suspect"], ["suspect"], ["poison"]]
    (claimed,) = claim(broker)
    assert (claimed.job_id, claimed.alone, claimed.crashes) == (IDS[0], True, 3)
    assert field(redis, IDS[0], "tensorq_crashes") is None


def test_stock_cleanup_fails_nothing_of_ours_however_late(redis, broker) -> None:
    store(redis, IDS)
    claim(broker)
    leased.lapse(redis)
    StartedJobRegistry(MODEL, connection=redis).cleanup()
    assert sorted(leased.leased(redis)) == IDS
    assert {field(redis, job_id, "status") for job_id in IDS} == {"started"}
    assert len(broker.reap([MODEL], crash_cap=3)) == len(IDS)


@LOST
def test_a_retried_sweep_lowers_the_counter_once(redis, proxy, broker, lost: str) -> None:
    store(redis, IDS)
    for job_id in IDS[:3]:
        redis.delete(keys.job(job_id))
    getattr(proxy, lost)(calls(SWEEP))
    broker.sweep(MODEL)
    assert int(redis.get(keys.input_bytes(MODEL))) == sum(map(int, redis.hvals(keys.inputs(MODEL))))
    assert sorted(redis.hkeys(keys.inputs(MODEL))) == [job_id.encode() for job_id in IDS[3:]]
    assert redis.exists(*map(keys.input, IDS)) == 3


def test_under_maxmemory_all_but_submits_go_on(redis, broker, other) -> None:
    store(redis, IDS, LARGE)
    claimed = claim(broker, 4)
    with no_memory(redis):
        with pytest.raises(OutOfMemoryError):
            store(redis, ["refused"])
        claimed += claim(other, 1)
        broker.mark_running("0:0", IDS[:2])
        assert broker.beat(claimed[:4], 480) == (False, [])
        assert finish(broker, done(claimed[:2], LARGE)) == ["FINISHED"] * 2
        assert broker.give_back(claimed[2:3]) == 1
    leased.lapse(redis)
    with no_memory(redis):
        assert [word for *_, word in other.reap([MODEL], crash_cap=3)] == ["returned"] * 2
        assert broker.sweep(MODEL) == 0
    assert sorted(leased.waiting(redis)) == IDS[2:]
    assert len(claim(other)) == 4


def test_a_reaped_job_waits_no_longer_than_its_ttl(redis, broker) -> None:
    store(redis, IDS[:1], options=JobOptions(ttl_s=100))
    store(redis, IDS[1:2])
    claim(broker)
    assert redis.ttl(keys.job(IDS[0])) == -1
    leased.lapse(redis)
    broker.reap([MODEL], crash_cap=3)
    assert 90 < redis.ttl(keys.job(IDS[0])) <= 100
    assert 690 < redis.ttl(keys.input(IDS[0])) <= 700
    assert redis.ttl(keys.job(IDS[1])) == redis.ttl(keys.input(IDS[1])) == -1


def test_what_a_lane_ended_is_no_suspect(redis, broker) -> None:
    store(redis, IDS)
    claim(broker)
    broker.mark_running("0:0", IDS[:2])
    broker.mark_running("0:1", IDS[2:4], ended=["0:0"])
    leased.lapse(redis)
    assert [word for *_, word in broker.reap([MODEL], crash_cap=3)][::-1] == [
        *("returned", "returned", "suspect", "suspect", "returned", "returned")
    ]
