"""Which faults happen when: all of it follows from the seed; what they meet does not."""

from __future__ import annotations

import random
from dataclasses import dataclass
from enum import StrEnum

EVERY_S = 1.8
RESTART_EVERY_S = 30.0


class What(StrEnum):
    """Faults; the value is for the report."""

    KILL = "kill -9 of a worker"
    TERM = "SIGTERM of a worker"
    PAUSE = "SIGSTOP of a worker, shorter than its lease"
    LONG_PAUSE = "SIGSTOP of a worker, past its lease"
    RESTART = "Redis ended by SIGTERM and started again"
    CRASH = "Redis ended by kill -9 and started again"


_WEIGHTS = {What.KILL: 5, What.TERM: 2, What.PAUSE: 2, What.LONG_PAUSE: 3}


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault.

    Attributes:
        at_s: when, in seconds from the start.
        what: what happens.
        slot: to which of the fleet's workers; 0 for Redis.
        for_s: how long it is stopped, or stays away.
        busy: wait, for a moment, until that worker holds jobs.
    """

    at_s: float
    what: What
    slot: int
    for_s: float
    busy: bool


def plan_faults(seed: int, span_s: float, slots: int, lease_s: float) -> list[Fault]:
    """Plans faults over ``span_s`` seconds, in order of time."""
    rng = random.Random(f"faults {seed}")
    faults = []
    at_s = 1.0
    while at_s < span_s:
        what = rng.choices(list(_WEIGHTS), list(_WEIGHTS.values()))[0]
        faults.append(
            Fault(at_s, what, rng.randrange(slots), _length(rng, what, lease_s), rng.random() < 0.7)
        )
        at_s += rng.uniform(0.5, 1.5) * EVERY_S
    restarts = max(2, int(span_s / RESTART_EVERY_S))
    for n in range(restarts):
        at_s = span_s * (n + rng.uniform(0.3, 0.9)) / restarts
        what = (What.CRASH, What.RESTART)[n % 2]
        faults.append(Fault(at_s, what, 0, _length(rng, what, lease_s), False))
    return sorted(faults, key=lambda fault: fault.at_s)


def _length(rng: random.Random, what: What, lease_s: float) -> float:
    if what is What.PAUSE:
        return rng.uniform(0.1, 0.6) * lease_s
    if what is What.LONG_PAUSE:
        # Lapsed, and given another worker's reaper the time to notice.
        return lease_s * 4 / 3 + rng.uniform(1.0, 2.5)
    if what is What.TERM:
        return rng.uniform(0.5, 5.0)
    return rng.uniform(0.2, 2.0)
