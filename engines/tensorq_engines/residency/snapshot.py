"""Snapshot: what people see of a model's residency."""

from __future__ import annotations

from dataclasses import dataclass

from tensorq_engines.base.footprint import Footprint
from tensorq_engines.base.memory import EngineMemory
from tensorq_engines.residency.policy import LoadPolicy, ResidentState


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One model at one moment.

    Attributes:
        name: the model's.
        policy: when it is loaded.
        pinned: whether it stays once it is loaded.
        state: where it is.
        footprint: what it asks for, measured once it was loaded.
        memory: what it has taken; lanes' arenas are not in it.
        idle_s: since its last tile or load; None where it was never loaded.
        hits: tiles that have begun.
        loads: loads that succeeded.
        evictions: how often it was evicted.
        failures: loads that failed.
        load_ms: how long its last load took; 0 where it was never loaded.
        retry_in_s: until a failed load may be tried again; 0 where nothing keeps it from being tried.
        reason: why it is not loaded: a failure, or why it does not fit; empty where neither.
    """

    name: str
    policy: LoadPolicy
    pinned: bool
    state: ResidentState
    footprint: Footprint
    memory: EngineMemory
    idle_s: float | None
    hits: int
    loads: int
    evictions: int
    failures: int
    load_ms: float
    retry_in_s: float
    reason: str
