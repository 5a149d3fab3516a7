"""Backoff: growing pauses while Redis is away."""

from __future__ import annotations

import logging
import threading

from redis.exceptions import RedisError, ResponseError

from tensorq_worker.loop.wake import Wake

log = logging.getLogger("rq.worker")


class Backoff:
    """Pauses of 0.1 s that double up to ``longest_s``; `reset` after a success."""

    def __init__(self, longest_s: float = 5.0) -> None:
        self._longest_s = longest_s
        self._pause_s = 0.1

    def reset(self) -> None:
        """Starts over with the shortest pause."""
        self._pause_s = 0.1

    def wait(self, stop: threading.Event | Wake, error: Exception, doing: str) -> bool:
        """Logs, pauses, and returns False if ``stop`` was set meanwhile."""
        log.error("%s: Redis: %s; trying again in %.1f s", doing, error, self._pause_s)
        stopped = stop.wait(self._pause_s)
        self._pause_s = min(2 * self._pause_s, self._longest_s)
        return not stopped


def wrong_type(error: RedisError) -> bool:
    """Tells whether somebody's key of another type is in the way: no waiting mends that."""
    return isinstance(error, ResponseError) and "WRONGTYPE" in str(error)
