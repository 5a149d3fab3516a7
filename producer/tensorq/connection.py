"""Connections: from whatever the user configured to a client that yields bytes; redis errors translated."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from redis import BlockingConnectionPool, Redis, RedisError
from redis import exceptions as failures
from redis.backoff import ExponentialWithJitterBackoff
from redis.client import Pipeline
from redis.cluster import RedisCluster
from redis.connection import ConnectionPool
from redis.exceptions import WatchError
from redis.retry import Retry
from redis.sentinel import SentinelConnectionPool

from tensorq.errors import ConfigError, RedisUnavailable

LONGEST_BLOCK_S = 1.0
MOST_LOST = 4
BLOCK_ENDS_LATE_S = 0.1  # one tick of its timer, at the default hz

# What a pool puts among its connections' arguments for itself; a new pool makes its own.
_POOL_OWNED = ("connection_pool", "maint_notifications_pool_handler", "himport_registry")
_CLUSTER = "Redis Cluster cannot be used: RQ's keys span slots; use a single Redis, Valkey or a Sentinel"

# From the special to the general: redis-py's classes derive from one another.
_ADVICE: tuple[tuple[type[Exception], str], ...] = (
    (failures.AuthenticationError, "refused the credentials; check the user name and the password"),
    (failures.NoPermissionError, "refused a command; check this user's ACL for RQ's and tensorq's keys"),
    (failures.BusyLoadingError, "is still loading its data; try again in a moment"),
    (failures.MaxConnectionsError, "has no connection left in this client's pool; raise max_connections"),
    (failures.OutOfMemoryError, "is at its maxmemory; take results, add workers or raise maxmemory"),
    (failures.ReadOnlyError, "is a read-only replica; connect to the primary"),
    (failures.ClusterCrossSlotError, f"is a cluster; {_CLUSTER}"),
    (failures.MovedError, f"is a cluster; {_CLUSTER}"),
    (failures.TimeoutError, "did not answer in time; check its load, the network and socket_timeout"),
    (failures.ConnectionError, "cannot be reached; check that it runs and that the address is right"),
)


def binary_client(redis: Redis | str) -> Redis:
    """Returns a client of the same Redis that yields bytes and may be shared by threads.

    Args:
        redis: a URL, or a client configured in any way: Sentinel, TLS, unix socket, RESP3, retries,
            timeouts, a pool of its own. It is left as it is.

    Returns:
        ``redis`` itself where it yields bytes already. A client over a new pool of the same class and
        settings where it decodes responses; the caller closes it. A client over the same pool where it is
        tied to one connection, which a blocking read would keep from other threads.

    Raises:
        RedisUnavailable: a kind of client that tensorq cannot use, such as a Redis Cluster's.
        ConfigError: the URL is malformed, or has an option that redis-py does not know. The message does not
            repeat it: it may hold a password.
    """
    if isinstance(redis, str):
        return _from_url(redis)
    if isinstance(redis, RedisCluster):
        raise RedisUnavailable(_CLUSTER)
    if not isinstance(redis, Redis) or isinstance(redis, Pipeline):
        kind = f"{type(redis).__module__}.{type(redis).__qualname__}"
        raise RedisUnavailable(f"got {kind}, expected a Redis URL or a redis.Redis client")
    if redis.connection_pool.connection_kwargs.get("decode_responses"):
        return Redis.from_pool(_binary_pool(redis.connection_pool))
    if redis.connection is not None:
        return Redis(connection_pool=redis.connection_pool)
    return redis


def _from_url(url: str) -> Redis:
    try:
        client = Redis.from_url(url)
        pool = client.connection_pool
        # The URL's own words would win over from_url's keywords.
        pool.connection_kwargs |= {"decode_responses": False, "retry": _retry()}
        with suppress(RedisError):  # said again, and translated, when it connects
            pool.connection_class(**pool.connection_kwargs)
    except (ValueError, TypeError) as exc:
        # Neither the text of the cause: urllib quotes the piece it stumbled over, which may be secret.
        wrong = "is malformed" if isinstance(exc, ValueError) else "has an option that redis-py does not know"
        raise ConfigError(
            f"the Redis URL {wrong}: expected redis://, rediss:// or unix://, such as "
            "redis://user:password@host:6379/0?socket_timeout=5; percent-encode special characters of a "
            "password"
        ) from None
    return client


def _retry() -> Retry:
    """Tries again after a lost connection, for about a second; ``from_url`` by itself does not.

    What tensorq sends may be sent twice: its scripts know what they have done.
    """
    return Retry(ExponentialWithJitterBackoff(base=0.05, cap=0.5), retries=4)


def block_limit_s(redis: Redis) -> float:
    """Longest time in seconds that a blocking read may ask for, 0 where it must not block.

    redis-py gives up after socket_timeout, and Redis ends a block up to `BLOCK_ENDS_LATE_S` late.
    """
    timeout_s: float | None = _settings(redis).get("socket_timeout", 3 * LONGEST_BLOCK_S)
    if timeout_s is None:
        return LONGEST_BLOCK_S
    return max(0.0, min(LONGEST_BLOCK_S, timeout_s / 2 - BLOCK_ENDS_LATE_S))


def location(redis: Redis) -> str:
    """Where a client connects to, for messages: never a user name or a password."""
    settings, pool = _settings(redis), redis.connection_pool
    if isinstance(pool, SentinelConnectionPool):
        return f"Redis (Sentinel service {pool.service_name!r})"
    where = settings.get("path") or f"{settings.get('host', 'localhost')}:{settings.get('port', 6379)}"
    return f"Redis at {where}, db {settings.get('db', 0)},"


def watch_again(conflict: WatchError, lost: int) -> int:
    """Counts the connections that a transaction has lost, which redis-py reports as conflicts.

    Args:
        conflict: why the transaction did not go through.
        lost: connections lost before.

    Returns:
        Connections lost by now.

    Raises:
        ConnectionError, TimeoutError: it was one too many. What makes Redis hang up each time, such as an
            input above its proto-max-bulk-len, would be sent for ever.
    """
    cause = conflict.__context__
    if not isinstance(cause, failures.ConnectionError | failures.TimeoutError):
        return lost
    if lost == MOST_LOST:
        raise cause
    return lost + 1


@contextmanager
def translated(redis: Redis) -> Iterator[None]:
    """Turns what redis-py raises inside the block into `RedisUnavailable`, with what to do about it."""
    try:
        yield
    except RedisError as exc:
        advice = next((text for kind, text in _ADVICE if isinstance(exc, kind)), "refused a command")
        raise RedisUnavailable(f"{location(redis)} {advice} ({type(exc).__name__}: {exc})") from exc


def _settings(redis: Redis) -> dict[str, Any]:
    return redis.connection_pool.connection_kwargs


def _binary_pool(pool: ConnectionPool) -> ConnectionPool:
    settings = {name: value for name, value in pool.connection_kwargs.items() if name not in _POOL_OWNED}
    settings |= {
        "decode_responses": False,
        "connection_class": pool.connection_class,
        "max_connections": pool.max_connections,
    }
    if isinstance(pool, BlockingConnectionPool):
        settings |= {"timeout": pool.timeout, "queue_class": pool.queue_class}
    if isinstance(pool, SentinelConnectionPool):
        settings |= {
            "service_name": pool.service_name,
            "sentinel_manager": pool.sentinel_manager,
            "is_master": pool.is_master,
            "check_connection": pool.check_connection,
        }
    return type(pool)(**settings)
