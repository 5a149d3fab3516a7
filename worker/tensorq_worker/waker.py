"""Waker: tells the loop that a queue which was empty has a job."""

from __future__ import annotations

import logging
import threading
from typing import Any, cast

from redis import Redis
from redis.exceptions import RedisError

from tensorq import keys
from tensorq_worker.loop.wake import Wake

log = logging.getLogger("rq.worker")
BLOCK_MS = 1000


class Waker:
    """Follows the wake stream on a thread of its own.

    A wake that is missed costs at most the loop's idle tick: stock tools push without one anyway.

    Args:
        redis: a connection that yields bytes.
        wake: set for each entry.
    """

    def __init__(self, redis: Redis, wake: Wake) -> None:
        self._redis = redis
        self._wake = wake
        self._stop = threading.Event()
        self._last_id = "$"
        self._thread = threading.Thread(target=self._run, name="tensorq-waker", daemon=True)

    def start(self) -> None:
        """Notes where the stream stands, and starts the thread."""
        try:
            newest = cast("list[Any]", self._redis.xrevrange(keys.WAKE, count=1))
            self._last_id = newest[0][0].decode() if newest else "0-0"
        except RedisError as exc:
            # Until the first entry it hears of those only that come while it listens.
            log.error("following wakes: Redis: %s", exc)
        self._thread.start()

    def close(self) -> None:
        """Ends the thread; it may still block on Redis for up to a second."""
        self._stop.set()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                reply = self._redis.xread({keys.WAKE: self._last_id}, count=100, block=BLOCK_MS)
            except RedisError:
                self._stop.wait(1.0)
                continue
            entries = _entries(reply)
            if entries:
                self._last_id = entries[-1][0].decode()
                self._wake.set()


def _entries(reply: Any) -> list[Any]:
    """The one stream's entries: RESP2 answers pairs, RESP3 a map of lists of lists."""
    if not reply:
        return []
    if isinstance(reply, dict):
        (streams,) = reply.values()
        return [entry for batch in streams for entry in batch]
    return cast("list[Any]", reply[0][1])
