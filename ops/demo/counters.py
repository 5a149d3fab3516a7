"""What workers counted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from redis import Redis

from tensorq import keys


@dataclass(frozen=True, slots=True)
class Counters:
    """Sums over models: jobs finished, their rows, batches run, and rows added to fill those."""

    jobs: int
    rows: int
    tiles: int
    padding: int


def worker_counters(redis: Redis, models: Iterable[str]) -> Counters:
    """Reads the counters that workers keep of ``models``, summed."""
    names = ("jobs", "rows", "tiles", "padding")
    found = [redis.hmget(keys.stats(model), names) for model in models]
    return Counters(*(sum(int(value or 0) for value in column) for column in zip(*found, strict=True)))
