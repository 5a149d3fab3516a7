"""Resident: the record of one model."""

from __future__ import annotations

from dataclasses import dataclass

from tensorq_engines.base.footprint import Footprint
from tensorq_engines.residency.policy import LoadPolicy, ResidentState


@dataclass(slots=True)
class Resident:
    """What is known of a model, loaded or not; only `Residents` changes it.

    Attributes:
        name: the model's.
        footprint: predicted before its first load, then measured.
        policy: when it is loaded.
        pinned: whether it stays once it is loaded, whatever its policy.
        state: where it is.
        loaded_at_s: when it was last loaded, on the caller's clock.
        last_used_s: when a tile of it last began or ended; its load counts too.
        load_s: how long its last load took; 0 where it has not been loaded.
        running: its tiles that are running.
        hits: tiles that have begun.
        loads: loads that succeeded.
        evictions: how often it was evicted.
        failures: loads that failed.
        failures_in_row: those since the last success.
        retry_at_s: when a failed load may be tried again.
        reason: why it is not loaded: the last load's failure, or why it does not fit; empty where neither.
    """

    name: str
    footprint: Footprint
    policy: LoadPolicy = LoadPolicy.LRU
    pinned: bool = False
    state: ResidentState = ResidentState.ABSENT
    loaded_at_s: float = 0.0
    last_used_s: float = 0.0
    load_s: float = 0.0
    running: int = 0
    hits: int = 0
    loads: int = 0
    evictions: int = 0
    failures: int = 0
    failures_in_row: int = 0
    retry_at_s: float = 0.0
    reason: str = ""

    @property
    def charged(self) -> bool:
        """Whether it has, or is promised, memory now."""
        return self.state in (ResidentState.LOADING, ResidentState.RESIDENT, ResidentState.EVICTING)

    @property
    def may_leave(self) -> bool:
        """Whether it can be evicted at all, now or later."""
        return self.policy is LoadPolicy.LRU and not self.pinned
