"""Trial: whether replaying a tile's graph is worth it, found by running the tile both ways."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median

LONG_S = 2e-3
"""A tile that takes longer is not tried: what launching costs is nothing beside it."""

TOLERANCE = 1.02
"""Replaying counts as slower from here on; it spares the host time even where it is no faster."""


def replay_is_slower(
    replay: Callable[[], object],
    eager: Callable[[], object],
    wait: Callable[[], None],
    rounds: int,
    clock: Callable[[], float] = time.perf_counter,
) -> bool:
    """Runs a tile both ways in turns, alone on its stream, and compares the medians.

    At most ``2 * (rounds + 1)`` runs of at most `LONG_S` each.

    Args:
        replay: queues the tile's graph.
        eager: queues the tile without it.
        wait: waits for what was queued.
        rounds: how often each way is measured, after a first time that is not counted.
        clock: seconds.
    """

    def seconds(queue: Callable[[], object]) -> float:
        started = clock()
        queue()
        wait()
        return clock() - started

    if max(seconds(replay), seconds(eager)) >= LONG_S:
        return False
    replays, eagers = [], []
    for _ in range(rounds):
        replays.append(seconds(replay))
        eagers.append(seconds(eager))
    return median(replays) > TOLERANCE * median(eagers)
