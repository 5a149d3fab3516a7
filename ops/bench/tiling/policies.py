"""Simple ways to tile, which the planner is compared with. Pure."""

from __future__ import annotations

from collections.abc import Sequence


def pad_up(rows: int, ladder: Sequence[int]) -> tuple[int, ...]:
    """Whole tiles of the largest size, and one of the least size that holds what is left."""
    whole, rest = divmod(rows, ladder[-1])
    last = [next(size for size in ladder if size >= rest)] if rest else []
    return (*[ladder[-1]] * whole, *last)


def trim_to_preferred(rows: int, ladder: Sequence[int]) -> tuple[int, ...]:
    """The largest size that is no more than what waits, again and again; the smallest one for less than it.

    So does the dynamic batcher of NVIDIA Triton with the ladder as ``preferred_batch_size``.
    """
    sizes: list[int] = []
    while rows > 0:
        sizes.append(max((size for size in ladder if size <= rows), default=ladder[0]))
        rows -= sizes[-1]
    return tuple(sizes)
