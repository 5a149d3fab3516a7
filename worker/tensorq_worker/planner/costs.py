"""Costs of tiles while nothing was measured."""

from __future__ import annotations

from collections.abc import Iterable

LAUNCH_ROWS = 4
"""What a launch is assumed to cost, in rows."""


def assumed_costs(ladder: Iterable[int]) -> dict[int, float]:
    """Returns the cost of a tile by its size, in rows: its own and those of a launch."""
    return {size: float(size + LAUNCH_ROWS) for size in ladder}
