import time

import pytest

from fixtures.leased import MODEL, claim, lapse, leased, store
from tensorq.connection import binary_client
from tensorq_worker.broker import Broker

pytestmark = pytest.mark.integration


@pytest.fixture
def broker(redis, redis_server):
    with binary_client(redis_server.url) as client:
        yield Broker(client, "w", lease_s=90, aging_ms=0, max_bytes=2**20, result_ttl_s=500)


def test_connections_are_opened_all_at_once_and_kept(broker, redis):
    before = len(redis.client_list())
    broker.open_connections(5)
    assert len(redis.client_list()) == before + 5
    broker.open_connections(5)
    assert len(redis.client_list()) == before + 5


def test_a_rehearsal_brings_its_payload_back_and_leaves_nothing(broker, redis):
    large = bytes(range(256)) * 1000
    assert broker.rehearse("rehearsal-1", large) == large
    assert redis.keys("*") == []


def test_a_worker_that_paused_after_its_beat_does_not_reap_its_own(redis, redis_server):
    with binary_client(redis_server.url) as client:
        own, other = (Broker(client, name, lease_s=2) for name in ("own", "other"))
        store(redis, ["a"])
        (job,) = claim(own)
        own.beat([job], 60)
        time.sleep(3.1)
        assert own.reap([MODEL], crash_cap=3) == []
        assert leased(redis) == ["a"]
        # Its next beat renews what nobody took, and any other worker may have taken it.
        own.beat([job], 60)
        assert other.reap([MODEL], crash_cap=3) == []
        lapse(redis)
        assert [word for *_, word in other.reap([MODEL], crash_cap=3)] == ["returned"]


def test_what_a_dead_worker_left_is_reaped_by_one_that_beats(redis, redis_server):
    with binary_client(redis_server.url) as client:
        dead, alive = (Broker(client, name, lease_s=1) for name in ("dead", "alive"))
        store(redis, ["a"])
        claim(dead)
        time.sleep(2.1)
        alive.beat([], 60)
        assert [word for *_, word in alive.reap([MODEL], crash_cap=3)] == ["returned"]
