"""The planner's tilings against simple ones and against brute force, by their costs. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from ops.bench.tiling.policies import pad_up, trim_to_preferred

from tensorq_worker.planner import Tiling

SLACK = 1e-9
"""What sums of the same costs may differ by, being added in another order."""


@dataclass(frozen=True, slots=True)
class Compared:
    """Costs in ms of serving ``rows`` rows.

    Attributes:
        rows: how many.
        planner, pad_up, trim: by tilings.
        brute: the least there is.
    """

    rows: int
    planner: float
    pad_up: float
    trim: float
    brute: float

    @property
    def faults(self) -> list[str]:
        """What the planner is dearer than."""
        bounds = {"brute force": self.brute, "pad-up": self.pad_up, "trim-to-preferred": self.trim}
        return [name for name, cost in bounds.items() if self.planner > cost * (1 + SLACK)]


def compare(costs_ms: Mapping[int, float], most_rows: int) -> list[Compared]:
    """Compares for 1 to ``most_rows`` rows."""
    ladder = sorted(costs_ms)
    tiling = Tiling(ladder, costs_ms)
    return [
        Compared(
            rows,
            total(costs_ms, tiling.sizes(rows)),
            total(costs_ms, pad_up(rows, ladder)),
            total(costs_ms, trim_to_preferred(rows, ladder)),
            brute_force(costs_ms, rows),
        )
        for rows in range(1, most_rows + 1)
    ]


def total(costs_ms: Mapping[int, float], sizes: Sequence[int]) -> float:
    """Returns what tiles cost together."""
    return math.fsum(costs_ms[size] for size in sizes)


def brute_force(costs_ms: Mapping[int, float], rows: int) -> float:
    """Returns the least cost of any tiles that hold ``rows`` rows: every count of every size is tried."""
    sizes = sorted(costs_ms)

    @cache
    def least(need: int, index: int) -> float:
        size = sizes[index]
        most = -(-need // size)
        if index == 0:
            return most * costs_ms[size]
        return min(
            count * costs_ms[size] + (least(need - count * size, index - 1) if count < most else 0.0)
            for count in range(most + 1)
        )

    return least(rows, len(sizes) - 1)
