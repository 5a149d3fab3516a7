"""Planner: which tile sizes serve the waiting rows, and whether to wait for more. Pure.

The cost of a tile is assumed to be its rows plus a launch worth `LAUNCH_ROWS` rows; a measured cost per size
takes its place by passing ``cost``.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

Cost = Callable[[int], float]
LAUNCH_ROWS = 4


def assumed_cost(size: int) -> float:
    """Cost of a tile of ``size`` rows, in rows."""
    return size + LAUNCH_ROWS


@lru_cache(maxsize=4096)
def tiling(rows: int, ladder: tuple[int, ...], cost: Cost = assumed_cost) -> tuple[int, ...]:
    """Returns the tiles to run, largest first, that serve ``rows`` rows at the least cost.

    Whole tiles of the largest size are cut off first; what is left is solved exactly, padding included, by
    dynamic programming over the rows; equal costs go to fewer launches.

    Args:
        rows: rows waiting, at least 1.
        ladder: batch sizes, ascending, not empty.
        cost: of one tile by its size, in any unit.
    """
    largest = ladder[-1]
    whole, rest = divmod(rows, largest)
    # best[r]: cost, launches and first tile of the cheapest way to serve r rows.
    best: list[tuple[float, int, int]] = [(0.0, 0, 0)]
    for need in range(1, rest + 1):
        best.append(
            min(
                (cost(size) + best[max(0, need - size)][0], best[max(0, need - size)][1] + 1, -size)
                for size in ladder
            )
        )
    sizes = []
    while rest > 0:
        sizes.append(-best[rest][2])
        rest = max(0, rest - sizes[-1])
    return (largest,) * whole + tuple(sorted(sizes, reverse=True))


def next_size(rows: int, ladder: tuple[int, ...]) -> int:
    """Returns the size of the tile to run first for ``rows`` waiting rows."""
    return ladder[-1] if rows >= ladder[-1] else tiling(rows, ladder)[0]


def covering_size(rows: int, ladder: tuple[int, ...]) -> int:
    """Returns the least size of the ladder that holds ``rows`` rows in one tile, or the largest."""
    return next((size for size in ladder if size >= rows), ladder[-1])


def wait_ms(rows: int, ladder: tuple[int, ...], age_ms: float, max_delay_ms: float) -> float:
    """Returns how long to wait for more rows, in ms; 0 means run now.

    Args:
        rows: rows waiting.
        ladder: batch sizes, ascending.
        age_ms: since the oldest job was submitted.
        max_delay_ms: the most that it may wait for company.
    """
    if rows >= ladder[-1]:
        return 0.0
    return max(0.0, max_delay_ms - age_ms)
