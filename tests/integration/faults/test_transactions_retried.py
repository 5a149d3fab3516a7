"""The SDK's transactions through a connection that breaks: redis-py calls that a conflict."""

from collections.abc import Iterator

import numpy as np
import pytest
from redis import Redis

from fixtures.proxy import Proxy, commits
from tensorq import Client, RedisUnavailable, keys

MODEL = "net"
X = {"x": np.zeros((1, 3), np.float32)}
LARGE = {"x": np.zeros((1, 40_000), np.float32)}
STORING = commits("SET", keys.INPUT)


@pytest.fixture
def client(proxy: Proxy) -> Iterator[Client]:
    """A client behind the proxy."""
    with proxy.client() as redis, Client(redis) as client:
        yield client


@pytest.mark.parametrize("lost", ["lose_reply", "lose_request"])
def test_a_retried_deferral_stores_its_job_once(
    redis: Redis, proxy: Proxy, client: Client, lost: str
) -> None:
    first = client.submit(MODEL, X)
    rule = getattr(proxy, lost)(STORING)
    second = client.submit(MODEL, X, depends_on=first)
    assert rule.done == 1
    assert redis.hget(keys.job(second.id), "status") == b"deferred"
    assert int(redis.get(keys.input_bytes(MODEL)) or 0) == 2 * redis.strlen(keys.input(second.id))


def test_a_deferral_at_which_redis_hangs_up_each_time_is_given_up(proxy: Proxy, client: Client) -> None:
    first = client.submit(MODEL, X)
    proxy.lose_request(STORING, times=50)
    with pytest.raises(RedisUnavailable, match="cannot be reached"):
        client.submit(MODEL, X, depends_on=first)


@pytest.mark.parametrize("lost", ["lose_reply", "lose_request"])
def test_a_retried_submit_under_an_id_of_ones_own_stores_its_job_once(
    redis: Redis, proxy: Proxy, client: Client, lost: str
) -> None:
    rule = getattr(proxy, lost)(STORING)
    assert client.submit(MODEL, LARGE, job_id="mine").id == "mine"
    assert rule.done == 1
    assert redis.lrange(keys.queue(MODEL), 0, -1) == [b"mine"]
    assert redis.ttl(keys.input("mine")) == -1
    assert int(redis.get(keys.input_bytes(MODEL)) or 0) == redis.strlen(keys.input("mine"))


def test_a_submit_under_an_id_of_ones_own_at_which_redis_hangs_up_each_time_is_given_up(
    proxy: Proxy, client: Client
) -> None:
    proxy.lose_request(STORING, times=50)
    with pytest.raises(RedisUnavailable, match="cannot be reached"):
        client.submit(MODEL, LARGE, job_id="mine")


@pytest.mark.parametrize("lost", ["lose_reply", "lose_request"])
@pytest.mark.parametrize("step", ["WATCH", "HMGET", "HGETALL", "EXEC"])
def test_a_retried_cancel_says_that_it_cancelled(proxy: Proxy, client: Client, step: str, lost: str) -> None:
    job = client.submit(MODEL, X)
    rule = getattr(proxy, lost)(lambda sent: sent.name == step)
    assert job.cancel()
    assert rule.done == 1
    assert not job.cancel()
