"""Redis behind a proxy, models on disk, and workers with faults put in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from redis import Redis

from fixtures.proxy import Proxy
from fixtures.redis import RedisServer
from fixtures.workers import Workers
from fixtures.workers import workers as open_workers
from models import catalogue
from tensorq import Client
from tensorq.submission import SUBMIT
from tensorq_worker.broker import Broker
from tensorq_worker.broker.broker import BEAT, CLAIM, FINISH, GIVE_BACK, REAP, SWEEP

ALL_SCRIPTS = (SUBMIT, CLAIM, FINISH, BEAT, GIVE_BACK, REAP, SWEEP)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.integration)


@pytest.fixture
def proxy(
    redis: Redis, redis_server: RedisServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Proxy]:
    """A proxy in front of the empty shared server, which knows all scripts already."""
    for script in ALL_SCRIPTS:
        redis.script_load(script.source)
    with Proxy(redis_server.socket, tmp_path_factory.mktemp("p") / "p.sock") as proxy:
        yield proxy


@pytest.fixture
def broker(proxy: Proxy) -> Iterator[Broker]:
    """A broker behind the proxy."""
    with proxy.client() as client:
        yield Broker(client, "worker-a")


@pytest.fixture
def other(redis: Redis) -> Broker:
    """Another worker's broker, with a direct way to Redis."""
    return Broker(redis, "worker-b")


@pytest.fixture(scope="session")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The models ``affine`` and ``gather``, with tiles of up to 8 rows."""
    profile = "[[profile]]\n{0} = {{ min = [1{1}], opt = [4{1}], max = [8{2}] }}\n"
    return catalogue.write_repository(
        tmp_path_factory.mktemp("models"),
        {
            "affine": (catalogue.affine(), profile.format("x", ", 1", ", 100000")),
            "gather": (catalogue.gather(), profile.format("index", "", "")),
        },
    )


@pytest.fixture
def workers(redis: Redis, redis_server: RedisServer, repository: Path, tmp_path: Path) -> Iterator[Workers]:
    """Starts workers on the shared, empty server."""
    with open_workers(redis_server.url, repository, tmp_path) as made:
        yield made


@pytest.fixture
def client(redis: Redis) -> Iterator[Client]:
    """A producer with a direct way to Redis."""
    with Client(redis) as client:
        yield client
