"""A real server, a repository of tiny models, worker processes, and a client of the same Redis."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from redis import Redis

from fixtures.redis import RedisServer
from fixtures.servers import Servers
from fixtures.workers import Workers, workers
from models import catalogue
from tensorq import Client

TESTS = Path(__file__).parents[2]
# Rows wait for company for as long as a test runs: their jobs are started, and never launched.
PATIENT = "[batching]\nmax_delay_ms = 600000\n"
EAGER = "[batching]\nmax_delay_ms = 0\n"


@pytest.fixture(scope="session")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Models ``affine``, ``mlp``, ``gather``, ``free-axes``, ``nap``, ``doomed`` and ``patient``."""
    models = {
        "affine": (catalogue.affine(), EAGER),
        "mlp": (catalogue.mlp(), None),
        "gather": (catalogue.gather(), EAGER),
        "free-axes": (catalogue.free_axes(), None),
        "nap": (catalogue.nap(), EAGER),
        "doomed": (catalogue.nap(fails=True), EAGER),
        "patient": (catalogue.affine(), PATIENT),
    }
    return catalogue.write_repository(tmp_path_factory.mktemp("models"), models)


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    """Redis and Valkey, shared by the session's tests."""
    servers = Servers(tmp_path_factory)
    yield servers
    servers.stop()


@pytest.fixture
def server(request: pytest.FixtureRequest, servers: Servers) -> RedisServer:
    """An empty server: redis-server, unless the test is parametrised."""
    server = servers.get(getattr(request, "param", "redis-server"))
    with server.client() as client:
        client.flushall()
    return server


@pytest.fixture
def redis(server: RedisServer) -> Iterator[Redis]:
    """A client that yields bytes."""
    with server.client() as client:
        yield client


@pytest.fixture
def client(redis: Redis) -> Iterator[Client]:
    """A producer."""
    with Client(redis) as client:
        yield client


@pytest.fixture
def fleet(server: RedisServer, redis: Redis, repository: Path, tmp_path: Path) -> Iterator[Workers]:
    """Starts workers; they can import the callbacks in `fixtures.callbacks`."""
    # Beside what these tests themselves import, or workers may run another checkout's code.
    path = os.pathsep.join(filter(None, [str(TESTS), os.environ.get("PYTHONPATH")]))
    with workers(server.url, repository, tmp_path, {"PYTHONPATH": path}) as fleet:
        yield fleet
