"""What the broker is told of a job that has its outputs, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from tensorq_worker.broker.claimed import Claimed


class Outcome(IntEnum):
    """What finish.lua did with a job."""

    LOST = 0
    FINISHED = 1
    REPEATED = 2
    DEPENDENTS = 3
    CANCELLED = 4


@dataclass(frozen=True, slots=True)
class Finished:
    """A job's packed result on its way into Redis.

    Attributes:
        job: the lease it was run under.
        result: packed outputs.
        started_s: when it was launched, Unix time in seconds.
    """

    job: Claimed
    result: bytes
    started_s: float
