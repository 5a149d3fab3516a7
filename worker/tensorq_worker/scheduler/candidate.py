"""Candidate: a stage that could run a tile, and what that would cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

Key = TypeVar("Key")


@dataclass(frozen=True, slots=True)
class Candidate(Generic[Key]):
    """A stage that holds rows.

    Attributes:
        key: the caller's name for it.
        model: its model's name.
        age_ms: since its oldest job was submitted.
        wait_ms: how long the planner would have it wait for more rows; 0 when it is ready.
        rows: rows that wait in it, at least 1.
        tile_rows: rows in the tile that it would run next, padding not counted, at least 1.
        tile_ms: that tile's predicted time, more than 0.
        unserved_ms: since when its model's queue has been not empty without getting a tile; see `Turns`.
        resident: whether its model is loaded.
        load_ms: predicted time of its model's load; not zero while it is resident, either.
        stay_ms: how long its model keeps its place after a load while it has work (`Residents.stay_s`).
        lane_free: whether a lane of its engine's kind has a slot for a tile.
    """

    key: Key
    model: str
    age_ms: float
    wait_ms: float
    rows: int = 1
    tile_rows: int = 1
    tile_ms: float = 1.0
    unserved_ms: float = 0.0
    resident: bool = True
    load_ms: float = 0.0
    stay_ms: float = 100.0
    lane_free: bool = True
