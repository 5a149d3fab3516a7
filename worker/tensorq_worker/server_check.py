"""Checks a Redis server before the worker trusts it with jobs."""

from __future__ import annotations

import re

from redis import Redis

from tensorq import keys
from tensorq.errors import RedisUnavailable

OLDEST = (6, 2)


def check_server(redis: Redis) -> None:
    """Returns if the server can be used.

    Raises:
        RedisUnavailable: it is too old, or a cluster whose slots would part RQ's keys.
    """
    info = redis.info("server")
    version = str(info.get("redis_version", "0"))
    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    if numbers < OLDEST:
        raise RedisUnavailable(f"Redis {version} is too old: tensorq needs 6.2 or newer, or Valkey")
    if info.get("redis_mode") == "cluster" and not _one_slot():
        raise RedisUnavailable(
            "Redis Cluster cannot be used: RQ's keys would lie in several slots. Use a single Redis, Valkey "
            "or a Sentinel; or, as an experiment, set RQ_KEY_PREFIX and TENSORQ_KEY_PREFIX to one hash tag, "
            "such as {tensorq}:rq and {tensorq}"
        )


def _one_slot() -> bool:
    # Redis takes what is between the first braces; where that is nothing, the key has no tag.
    found = [re.search(r"\{([^}]*)\}", prefix) for prefix in (keys.RQ, keys.OURS)]
    tags = {tag.group(1) if tag else "" for tag in found}
    return len(tags) == 1 and "" not in tags
