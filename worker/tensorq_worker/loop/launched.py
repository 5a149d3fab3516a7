"""Launched: a tile on a lane, and what the loop is told when it ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from tensorq_engines import Slot
from tensorq_worker.broker import Claimed
from tensorq_worker.tiles import Tile


@dataclass(frozen=True, slots=True)
class Launched:
    """A submitted tile.

    Attributes:
        tile: the rows.
        slot: where it runs.
        alone: tells whether no other lane has a tile under way; None where one had at submit, or
            this lane had none.
        timeout_s: the shortest timeout of its jobs; None without one.
    """

    tile: Tile
    slot: Slot
    alone: Callable[[], bool] | None
    timeout_s: float | None


@dataclass(frozen=True, slots=True)
class TileEnded:
    """A tile failed: its jobs have no results yet."""

    tile: Tile
    error: Exception


@dataclass(frozen=True, slots=True)
class JobEnded:
    """A job that RQ's handlers must end.

    Attributes:
        job: the lease.
        outputs: its results, arrays of their own; None when it failed.
        result: the same, packed.
        error: why it failed, or None.
    """

    job: Claimed
    outputs: Mapping[str, np.ndarray] | None = None
    result: bytes = b""
    error: Exception | None = None


Event = TileEnded | JobEnded
