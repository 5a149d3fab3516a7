"""What Redis did: its own counts and times of commands, and of scripts by name."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, cast

from redis import Redis

PACKAGES = ("tensorq", "tensorq_worker.broker")
LOGGED = 100_000
# Commands inside scripts are logged too: all of them would fill the log, and take time.
SLOW_US = 20


@dataclass(slots=True)
class Cost:
    """How often a command or a script ran, and its microseconds inside the server, all together."""

    calls: int = 0
    us: int = 0


def watch(redis: Redis) -> None:
    """Starts counting from nothing; calls of `SLOW_US` and more are logged."""
    redis.config_set("slowlog-max-len", LOGGED)
    redis.config_set("slowlog-log-slower-than", SLOW_US)
    redis.slowlog_reset()
    redis.config_resetstat()


def by_command(redis: Redis) -> dict[str, Cost]:
    """Commands by time, those that scripts called included: evalsha's own time contains theirs."""
    stats = cast("dict[str, dict[str, Any]]", redis.info("commandstats"))
    costs = {
        name.removeprefix("cmdstat_"): Cost(entry["calls"], entry["usec"]) for name, entry in stats.items()
    }
    return dict(sorted(costs.items(), key=lambda item: -item[1].us))


def by_script(redis: Redis) -> dict[str, Cost]:
    """Calls of tensorq's scripts since `watch`, by script; the log is switched off."""
    redis.config_set("slowlog-log-slower-than", -1)
    names = _names()
    costs: dict[str, Cost] = defaultdict(Cost)
    for entry in redis.slowlog_get(LOGGED):
        words = entry["command"].split(b" ", 2)
        if words[0].upper() in (b"EVALSHA", b"EVAL"):
            cost = costs[names.get(words[1].decode(errors="replace"), "other")]
            cost.calls, cost.us = cost.calls + 1, cost.us + entry["duration"]
    return dict(sorted(costs.items(), key=lambda item: -item[1].us))


def _names() -> dict[str, str]:
    scripts = [script for package in PACKAGES for script in files(package).joinpath("scripts").iterdir()]
    return {
        hashlib.sha1(script.read_bytes(), usedforsecurity=False).hexdigest(): script.name
        for script in scripts
        if script.name.endswith(".lua")
    }
