import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from redis import BlockingConnectionPool, ConnectionPool, Redis
from redis import exceptions as failures
from redis.asyncio import Redis as AsyncRedis
from redis.backoff import NoBackoff
from redis.cluster import RedisCluster
from redis.retry import Retry
from redis.sentinel import Sentinel

from fixtures.finisher import FakeWorker
from fixtures.redis import RedisServer, free_port, require_redis_server
from fixtures.tls import self_signed, tls_server
from tensorq import Client, ConfigError, JobCancelled, RedisUnavailable
from tensorq.connection import binary_client, block_limit_s, location, translated

SECRET = "s3cr3t-pa55"
X = {"x": np.arange(3, dtype=np.float32)[None]}


def round_trip(redis: Redis | str, worker: Redis) -> None:
    """Submits a job, has it ended, waits for it in all ways, and cancels another."""
    with Client(redis) as client, FakeWorker(worker, "net"):
        np.testing.assert_array_equal(client.submit("net", X).result(timeout=10)["x"], X["x"])
        jobs = client.submit_many("net", [X] * 3)
        assert [job.id for job in client.as_completed(jobs, timeout=10)]
        assert len(client.gather(jobs, timeout=10)) == 3
    with Client(redis) as client:
        assert client.submit("net", X).cancel()
        assert client.queue_length("net") == 0
        assert client.models() == []


@pytest.mark.parametrize(
    "settings",
    [
        {"decode_responses": True},
        {"decode_responses": True, "encoding": "latin-1"},
        {"protocol": 2},
        {"protocol": 3},
        {"protocol": 3, "decode_responses": True},
        {"health_check_interval": 1},
        {"socket_timeout": 0.1},
        {"socket_timeout": 0.1, "decode_responses": True},
        {"socket_timeout": None},
        {"retry": Retry(NoBackoff(), 0)},
        {"single_connection_client": True},
        {"single_connection_client": True, "decode_responses": True},
        {"client_name": "mine"},
    ],
    ids=lambda options: "-".join(options),
)
def test_a_client_configured_in_any_way_works(
    redis_server: RedisServer, redis: Redis, settings: dict[str, object]
) -> None:
    with redis_server.client(**settings) as mine:
        round_trip(mine, redis)
        mine.set("still", "mine")
        assert mine.get("still") == ("mine" if settings.get("decode_responses") else b"mine")


def test_a_wait_on_a_client_of_one_connection_does_not_hold_up_threads(
    redis_server: RedisServer,
) -> None:
    with redis_server.client(single_connection_client=True) as mine, Client(mine) as client:
        job = client.submit("net", X)
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(client.gather, [job], 2.0, return_errors=True)
            time.sleep(0.3)
            began = time.monotonic()
            client.submit("net", X)
            assert time.monotonic() - began < 0.3
            assert job.cancel()
            assert isinstance(waiting.result()[0], JobCancelled)


@pytest.mark.parametrize("decode", [False, True])
def test_a_blocking_pool_of_two_connections_works(
    redis_server: RedisServer, redis: Redis, decode: bool
) -> None:
    pool = BlockingConnectionPool.from_url(
        redis_server.url, max_connections=2, timeout=5, decode_responses=decode
    )
    with Redis.from_pool(pool) as mine:
        round_trip(mine, redis)
        made = binary_client(mine).connection_pool
        assert isinstance(made, BlockingConnectionPool)
        assert (made.max_connections, made.timeout) == (2, 5)


def test_a_client_that_yields_bytes_is_used_as_it_is_and_left_open(redis_server: RedisServer) -> None:
    with redis_server.client() as mine:
        assert binary_client(mine) is mine
        with Client(mine) as client:
            client.submit("net", X)
        assert mine.connection_pool._get_in_use_connections() == set()
        assert len(mine.connection_pool._get_free_connections()) == 1


def test_a_client_of_the_same_pool_and_settings_is_made_where_responses_are_decoded() -> None:
    class MyPool(ConnectionPool):
        pass

    mine = Redis.from_pool(
        MyPool(host="h", port=7, db=3, password=SECRET, decode_responses=True, encoding="latin-1")
    )
    made = binary_client(mine).connection_pool
    assert type(made) is MyPool
    settings = made.connection_kwargs
    assert {
        name: settings[name] for name in ("host", "port", "db", "password", "decode_responses", "encoding")
    } == {
        "host": "h",
        "port": 7,
        "db": 3,
        "password": SECRET,
        "decode_responses": False,
        "encoding": "latin-1",
    }
    assert mine.connection_pool.connection_kwargs["decode_responses"]


def test_a_sentinel_master_stays_one() -> None:
    sentinel = Sentinel([("nowhere.invalid", 26379)], socket_timeout=0.1)
    mine = sentinel.master_for("mymaster", decode_responses=True, password=SECRET, ssl=True)
    made = binary_client(mine)
    assert type(made.connection_pool) is type(mine.connection_pool)
    assert made.connection_pool.connection_class is mine.connection_pool.connection_class
    assert made.connection_pool.service_name == "mymaster"
    assert made.connection_pool.is_master
    assert location(made) == "Redis (Sentinel service 'mymaster')"
    made.connection_pool.make_connection()


def test_a_sentinel_brings_the_client_to_its_master(tmp_path: Path) -> None:
    require_redis_server()
    with RedisServer(tmp_path, "--port", "0", "--bind", "127.0.0.1") as server:
        port = free_port()
        with server.client() as admin:
            admin.config_set("port", port)
            (tmp_path / "sentinel").mkdir()
            config = tmp_path / "sentinel" / "sentinel.conf"
            sentinel_port = free_port()
            config.write_text(f"port {sentinel_port}\nsentinel monitor mymaster 127.0.0.1 {port} 1\n")
            process = subprocess.Popen(["redis-server", config, "--sentinel"], stdout=subprocess.DEVNULL)
            try:
                sentinel = Sentinel([("127.0.0.1", sentinel_port)])
                for decode in (False, True):
                    round_trip(sentinel.master_for("mymaster", decode_responses=decode), admin)
            finally:
                process.kill()
                process.wait()


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[RedisServer]:
    """A server with a password, and a user ``bob`` who may use all but has his own."""
    require_redis_server()
    user = ["--user", "bob", "on", f">{SECRET}", "~*", "&*", "+@all"]
    with RedisServer(tmp_path, "--requirepass", SECRET, *user) as server:
        yield server


@pytest.mark.parametrize("protocol", [2, 3])
def test_passwords_and_user_names_work(guarded: RedisServer, protocol: int) -> None:
    with guarded.client(password=SECRET) as admin:
        for settings in ({"password": SECRET}, {"username": "bob", "password": SECRET}):
            with guarded.client(**settings, protocol=protocol, decode_responses=True) as mine:
                round_trip(mine, admin)
        round_trip(f"unix://bob@{guarded.socket}?password={SECRET}", admin)


@pytest.mark.parametrize("settings", [{}, {"password": "wrong-" + SECRET}], ids=["none", "wrong"])
def test_refused_credentials_say_so_without_repeating_them(
    guarded: RedisServer, settings: dict[str, str]
) -> None:
    with guarded.client(**settings, retry=Retry(NoBackoff(), 0)) as mine, Client(mine) as client:
        with pytest.raises(RedisUnavailable, match="refused the credentials; check the user name") as caught:
            client.submit("net", X)
        assert SECRET not in str(caught.value)
        assert isinstance(caught.value.__cause__, failures.RedisError)


def test_a_user_without_rights_is_told_to_look_at_the_acl(guarded: RedisServer) -> None:
    with guarded.client(password=SECRET) as admin:
        admin.execute_command("ACL", "SETUSER", "eve", "on", ">x", "~mine:*", "+@all")
    mine = guarded.client(username="eve", password="x")
    with mine, Client(mine) as client, pytest.raises(RedisUnavailable, match="check this user's ACL"):
        client.submit("net", X)


@pytest.fixture
def tls(tmp_path: Path) -> Iterator[tuple[RedisServer, int]]:
    with tls_server(tmp_path, *self_signed(tmp_path)) as found:
        yield found


def test_tls_works(tls: tuple[RedisServer, int], tmp_path: Path) -> None:
    server, port = tls
    with server.client() as admin:
        round_trip(f"rediss://localhost:{port}?ssl_ca_certs={tmp_path / 'cert.pem'}", admin)
        with Redis(
            host="localhost", port=port, ssl=True, ssl_cert_reqs="none", decode_responses=True
        ) as mine:
            round_trip(mine, admin)


def test_a_server_that_is_down_is_named_with_the_remedy(tmp_path: Path) -> None:
    url = f"unix://bob@{tmp_path / 'none.sock'}?password={SECRET}"
    with Client(url) as client, pytest.raises(RedisUnavailable) as caught:
        client.submit("net", X)
    said = str(caught.value)
    assert str(tmp_path / "none.sock") in said
    assert "cannot be reached; check that it runs and that the address is right" in said
    assert SECRET not in said
    assert isinstance(caught.value, ConnectionError)


def test_every_public_call_translates_what_redis_raises(tmp_path: Path) -> None:
    mine = Redis(unix_socket_path=str(tmp_path / "none.sock"), retry=Retry(NoBackoff(), 0))
    with Client(mine) as client:
        calls: list[Callable[[], object]] = [
            lambda: client.submit("net", X),
            lambda: client.submit_many("net", [X]),
            lambda: client.result("a", timeout=1),
            lambda: client.gather(["a"], timeout=1),
            lambda: list(client.as_completed(["a"], timeout=1)),
            lambda: client.status("a"),
            lambda: client.statuses(["a"]),
            lambda: client.cancel("a"),
            client.models,
            lambda: client.queue_length("net"),
        ]
        for call in calls:
            with pytest.raises(RedisUnavailable):
                call()


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (failures.BusyLoadingError("x"), "is still loading its data"),
        (failures.MaxConnectionsError("x"), "raise max_connections"),
        (failures.OutOfMemoryError("x"), "is at its maxmemory"),
        (failures.ReadOnlyError("x"), "connect to the primary"),
        (failures.ClusterCrossSlotError("x"), "RQ's keys span slots"),
        (failures.MovedError("1 h:7"), "RQ's keys span slots"),
        (failures.TimeoutError("x"), "check its load, the network and socket_timeout"),
        (failures.ResponseError("x"), "refused a command"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_each_kind_of_error_comes_with_its_advice(error: Exception, says: str) -> None:
    with pytest.raises(RedisUnavailable, match=says) as caught, translated(Redis(host="h", port=1, db=2)):
        raise error
    assert str(caught.value).startswith("Redis at h:1, db 2, ")
    assert caught.value.__cause__ is error


def test_a_full_redis_refuses_and_keeps_nothing(redis: Redis) -> None:
    redis.config_set("maxmemory", 1)
    before = redis.dbsize()
    try:
        for array in (X, {"x": np.zeros((1, 30_000), np.float32)}):
            with Client(redis) as client, pytest.raises(RedisUnavailable, match="maxmemory"):
                client.submit("net", array)
        assert redis.dbsize() == before
    finally:
        redis.config_set("maxmemory", 0)


@pytest.mark.parametrize(
    "url",
    [
        f"http://u:{SECRET}@host",
        f"u:{SECRET}@host",
        f"redis://u:{SECRET}/x@host:6379/0",
        f"redis://h:{SECRET}",
        "",
    ],
)
def test_a_malformed_url_is_refused_without_repeating_it(url: str) -> None:
    with pytest.raises(ConfigError, match="the Redis URL is malformed: expected redis://") as caught:
        Client(url)
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


@pytest.mark.parametrize("option", ["sokcet_timeout=5", "single_connection_client=1"])
def test_a_url_with_an_unknown_option_is_refused(option: str) -> None:
    with pytest.raises(ConfigError, match="has an option that redis-py does not know: expected") as caught:
        Client(f"redis://:{SECRET}@h?{option}")
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("option", ["decode_responses=true", "retry=3"])
def test_a_url_cannot_ask_for_what_the_client_must_have(
    redis_server: RedisServer, redis: Redis, option: str
) -> None:
    round_trip(f"{redis_server.url}?{option}", redis)


def test_a_cluster_client_is_refused_with_the_reason() -> None:
    cluster = RedisCluster.__new__(RedisCluster)
    with pytest.raises(RedisUnavailable, match="RQ's keys span slots; use a single Redis"):
        Client(cluster)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "other", [AsyncRedis(), Redis().pipeline(), None, 7, b"redis://h"], ids=lambda o: type(o).__name__
)
def test_other_things_are_refused(other: object) -> None:
    with pytest.raises(RedisUnavailable, match=r"got .*, expected a Redis URL or a redis\.Redis client"):
        Client(other)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("socket_timeout", "limit_s"),
    [(None, 1.0), (10, 1.0), (2, 0.9), (1, 0.4), (0.3, 0.05), (0.2, 0.0), (0.1, 0.0)],
)
def test_a_block_ends_before_the_socket_times_out(socket_timeout: float | None, limit_s: float) -> None:
    assert block_limit_s(Redis(socket_timeout=socket_timeout)) == pytest.approx(limit_s)
