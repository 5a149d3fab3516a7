"""A submit whose request or reply is lost stores each job once."""

import pytest
from redis import Redis

from fixtures import leased
from fixtures.leased import LARGE, MODEL, SMALL, field, store
from fixtures.proxy import Proxy, calls
from tensorq import keys
from tensorq.jobhash import JobOptions
from tensorq.submission import FULL, KNOWN, STORED, SUBMIT, Limits

IDS = [f"job-{n}" for n in range(5)]


@pytest.mark.parametrize("elements", [SMALL, LARGE])
@pytest.mark.parametrize("lost", ["lose_reply", "lose_request"])
def test_a_retried_submit_stores_each_job_once(redis: Redis, proxy: Proxy, lost: str, elements: int) -> None:
    rule = getattr(proxy, lost)(calls(SUBMIT))
    with proxy.client() as client:
        outcomes = store(client, IDS, elements)
    assert rule.done == 1
    assert outcomes == [KNOWN if lost == "lose_reply" else STORED] * len(IDS)
    assert leased.waiting(redis) == IDS
    assert int(redis.get(keys.input_bytes(MODEL))) == sum(map(int, redis.hvals(keys.inputs(MODEL))))
    for n, job_id in enumerate(IDS):
        assert redis.get(keys.input(job_id)) == leased.packed(n, elements)
        assert redis.ttl(keys.input(job_id)) == -1


def test_a_retried_submit_with_a_ttl_keeps_it(redis: Redis, proxy: Proxy) -> None:
    proxy.lose_reply(calls(SUBMIT))
    with proxy.client() as client:
        store(client, IDS, LARGE, JobOptions(ttl_s=100))
    for job_id in IDS:
        assert 90 < redis.ttl(keys.job(job_id)) <= 100
        assert 690 < redis.ttl(keys.input(job_id)) <= 700


@pytest.mark.parametrize("elements", [SMALL, LARGE])
def test_a_retried_submit_to_a_full_queue_refuses_the_same_jobs(
    redis: Redis, proxy: Proxy, elements: int
) -> None:
    proxy.lose_reply(calls(SUBMIT))
    with proxy.client() as client:
        assert store(client, IDS, elements, limits=Limits(max_jobs=3)) == [KNOWN] * 3 + [FULL] * 2
    assert leased.waiting(redis) == IDS[:3]
    assert not redis.exists(*(keys.input(job_id) for job_id in IDS[3:]))


def test_a_submit_repeated_after_the_job_is_done_leaves_no_input(redis: Redis, broker, other) -> None:
    store(redis, IDS, LARGE)
    leased.finish(other, leased.done(leased.claim(other)))
    assert store(redis, IDS, LARGE) == [KNOWN] * len(IDS)
    assert not redis.exists(*(keys.input(job_id) for job_id in IDS))
    assert field(redis, IDS[0], "status") == "finished"
