"""Scheduler: whose tile runs next. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

Key = TypeVar("Key")


@dataclass(frozen=True, slots=True)
class Candidate(Generic[Key]):
    """A stage that could run a tile.

    Attributes:
        key: the caller's name for it.
        age_ms: since its oldest job was submitted.
        wait_ms: how long the planner would have it wait for more rows; 0 when it is ready.
    """

    key: Key
    age_ms: float
    wait_ms: float


def pick(candidates: Iterable[Candidate[Key]]) -> Candidate[Key] | None:
    """Returns the ready candidate whose oldest job has waited longest, so that no stage starves."""
    return max((c for c in candidates if c.wait_ms <= 0), key=lambda c: c.age_ms, default=None)


def soonest_ms(candidates: Iterable[Candidate[Key]]) -> float | None:
    """Returns in how many ms the first of the waiting candidates becomes ready; None without any."""
    return min((c.wait_ms for c in candidates if c.wait_ms > 0), default=None)
