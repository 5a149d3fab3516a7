import pytest

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
