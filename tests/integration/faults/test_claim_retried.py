"""A claim whose reply is lost is answered again: nothing is popped twice or forgotten."""

import pytest
from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import ConnectionError
from redis.retry import Retry

from fixtures import leased
from fixtures.leased import LARGE, SMALL, claim, field, store
from fixtures.proxy import Proxy, calls
from tensorq import keys
from tensorq_worker.broker import Broker, Want
from tensorq_worker.broker.broker import CLAIM

IDS = [f"job-{n}" for n in range(10)]


@pytest.fixture
def once(proxy: Proxy) -> Broker:
    """A broker whose connection does not try again by itself."""
    return Broker(proxy.client(retry=Retry(NoBackoff(), 0)), "worker-a")


def ids(jobs) -> list[str]:
    return sorted(job.job_id for job in jobs)


@pytest.mark.parametrize("elements", [SMALL, LARGE])
@pytest.mark.parametrize("lost", ["lose_reply", "lose_request"])
def test_a_retried_claim_returns_the_very_same_batch(
    redis: Redis, proxy: Proxy, broker: Broker, lost: str, elements: int
) -> None:
    store(redis, IDS, elements)
    rule = getattr(proxy, lost)(calls(CLAIM))
    claimed = claim(broker, 4)
    assert rule.done == 1
    assert ids(claimed) == IDS[:4] == sorted(leased.leased(redis))
    assert leased.waiting(redis) == IDS[4:]
    assert len({job.token for job in claimed}) == 1
    for job in claimed:
        assert job.payload == leased.packed(IDS.index(job.job_id), elements)


def test_a_batch_whose_payloads_were_lost_on_the_way_is_claimed_again(
    redis: Redis, proxy: Proxy, once: Broker
) -> None:
    store(redis, IDS, LARGE)
    proxy.lose_reply(lambda sent: sent.name == "MGET")
    with pytest.raises(ConnectionError):
        claim(once, 4)
    assert ids(claim(once, 1)) == IDS[:4]


def test_a_worker_that_gave_up_gets_the_batch_with_its_next_claim_whatever_that_wants(
    redis: Redis, proxy: Proxy, once: Broker
) -> None:
    store(redis, IDS)
    proxy.lose_reply(calls(CLAIM))
    with pytest.raises(ConnectionError):
        claim(once, 4)
    assert ids(once.claim([Want("another", 1, 1)])) == IDS[:4]
    assert ids(claim(once, 100)) == IDS[4:]
    assert leased.waiting(redis) == []


def test_a_claim_that_never_arrived_takes_what_the_next_one_wants(
    redis: Redis, proxy: Proxy, once: Broker
) -> None:
    store(redis, IDS)
    proxy.lose_request(calls(CLAIM))
    with pytest.raises(ConnectionError):
        claim(once, 4)
    assert ids(claim(once, 2)) == IDS[:2]


def test_a_batch_that_lapsed_before_it_was_asked_for_again_goes_to_whoever_claims_first(
    redis: Redis, proxy: Proxy, once: Broker, other: Broker
) -> None:
    store(redis, IDS)
    proxy.lose_reply(calls(CLAIM))
    with pytest.raises(ConnectionError):
        claim(once, 4)
    leased.lapse(redis)
    other.reap(["net"], crash_cap=3)
    assert leased.waiting(redis) == IDS
    theirs = claim(other, 2)
    assert ids(theirs) == IDS[:2]
    assert claim(once, 4) == []
    assert ids(claim(once, 100)) == IDS[2:]
    assert field(redis, IDS[0], "tensorq_suspect") is None


def test_jobs_that_ended_meanwhile_are_not_claimed_again(redis: Redis, proxy: Proxy, once: Broker) -> None:
    store(redis, IDS)
    proxy.lose_reply(calls(CLAIM))
    with pytest.raises(ConnectionError):
        claim(once, 3)
    redis.delete(keys.job(IDS[0]))
    assert ids(claim(once, 3)) == IDS[1:3]
