"""Waiting until a server answers, and making sure that it is ours that does."""

from __future__ import annotations

import time

from redis import Redis
from redis.backoff import NoBackoff
from redis.exceptions import BusyLoadingError, RedisError
from redis.retry import Retry

from tensorq.embedded.errors import StartTimeout
from tensorq.embedded.keeper import Keeper

PAUSE_S = 0.02
REPLY_TIMEOUT_S = 0.5


def wait_until_ready(url: str, keeper: Keeper, timeout_s: float) -> bool:
    """Waits until the server answers PING.

    Returns:
        True once it does, False if it ended before.

    Raises:
        StartTimeout: neither within ``timeout_s``.
    """
    deadline = time.monotonic() + timeout_s
    last = "nothing was tried"
    with Redis.from_url(url, socket_timeout=REPLY_TIMEOUT_S, retry=Retry(NoBackoff(), 0)) as redis:
        while keeper.poll() is None:
            try:
                # On a taken port another server may answer while ours is about to fail.
                if redis.ping() and redis.info("server")["process_id"] == keeper.server_pid:
                    return True
                last = "another server answered"
            except BusyLoadingError:
                last = "it was still loading its data"
            except (RedisError, OSError) as exc:
                last = str(exc)
            if time.monotonic() > deadline:
                raise StartTimeout(
                    f"the server did not answer PING within {timeout_s:g} s: {last}; give a larger "
                    "start_timeout_s if its data is large or this host is busy"
                )
            keeper.wait(PAUSE_S)
    return False
