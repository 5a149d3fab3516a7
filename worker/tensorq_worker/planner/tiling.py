"""Tiling: the cheapest tiles of a ladder that serve any number of rows. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import gcd, inf, lcm


class Tiling:
    """The cheapest multiset of sizes whose sum is at least the rows, padding included, for any rows.

    Equal costs go to fewer launches, then to the larger tile. Exact for all positive costs: they are kept as
    integers of a common denominator, so that sums are equal where they should be.

    Up to `window` rows a table holds the answer, by dynamic programming: with ``f(r)`` the least cost of at
    least ``r`` rows, ``f(r) = min over s of c(s) + f(max(0, r - s))``. It grows as far as was asked for.

    Beyond, tiles of one size ``b`` are cut off first: that of the least cost per row ``c(b) / b``, and of
    several such the largest. **Some best tiling has few tiles of other sizes.** Take ``b`` tiles of other
    sizes. Their ``b`` partial sums and the empty one are ``b + 1`` numbers, so two are equal modulo ``b``,
    and the tiles between these two have together ``k * b`` rows for a ``k >= 1``. ``k`` tiles of ``b`` in
    their place cover as many rows, so the tiling still covers; they cost no more, because each tile given up
    cost at least its rows times ``c(b) / b``; and where they cost the same, each tile given up was of that
    same cost per row, so no larger than ``b``, and there were at least ``k`` of them. Each exchange leaves
    fewer tiles of other sizes, so a best tiling remains that has at most ``b - 1`` of them. The same holds
    for tiles of one size ``s`` alone, of which ``b / gcd(b, s)`` have a multiple of ``b`` rows: at most one
    fewer remain. Those other tiles cover ``window`` rows at the most, the lesser of both bounds. Where more
    are wanted, this best tiling therefore has a tile of ``b``, and what is left of it without that tile is a
    best tiling of ``b`` rows fewer: a cheaper one would, with ``b``, have been cheaper here.

    Attributes:
        ladder: batch sizes, ascending.
        window: rows up to which the table answers.
    """

    def __init__(self, ladder: Sequence[int], costs_ms: Mapping[int, float]) -> None:
        """Computes nothing but the window.

        Args:
            ladder: batch sizes, ascending, not empty.
            costs_ms: the cost of a tile by its size, in ms or any other unit; sizes that are not on the
                ladder are ignored.

        Raises:
            ValueError: a size has no cost, or one that is not positive and finite.
        """
        self.ladder = tuple(ladder)
        if not self.ladder or any(not 0 < costs_ms.get(size, 0.0) < inf for size in self.ladder):
            raise ValueError(
                f"got costs {dict(costs_ms)} for sizes {list(self.ladder)}, expected at least one size and "
                "for each a positive and finite cost"
            )
        ratios = [float(costs_ms[size]).as_integer_ratio() for size in self.ladder]
        self._unit = lcm(*(denominator for _, denominator in ratios))
        self._costs = {
            size: numerator * (self._unit // denominator)
            for size, (numerator, denominator) in zip(self.ladder, ratios, strict=True)
        }
        self._order = [(size, self._costs[size]) for size in reversed(self.ladder)]
        self._best = self._densest()
        self.window = self._rows_of_others()
        # By rows: the least cost, its launches, and the largest tile of such a tiling.
        self._cost, self._launches, self._first = [0], [0], [0]
        self._pays: dict[int, int | None] = {}

    @property
    def largest(self) -> int:
        """The largest size."""
        return self.ladder[-1]

    def next_size(self, rows: int) -> int:
        """Returns the largest tile of the tiling of ``rows`` rows, at least 1: the one to run first."""
        cut, rest = self._cut(rows)
        return max(self._best, self._first[rest]) if cut else self._first[rest]

    def sizes(self, rows: int) -> tuple[int, ...]:
        """Returns the tiles that serve ``rows`` rows, largest first; none for 0 rows."""
        cut, rest = self._cut(rows)
        sizes = [self._best] * cut
        while rest > 0:
            sizes.append(self._first[rest])
            rest = max(0, rest - sizes[-1])
        return tuple(sorted(sizes, reverse=True))

    def cost_ms(self, rows: int) -> float:
        """Returns the cost of these tiles, in the unit of the costs."""
        return self._total(rows) / self._unit

    def tile_ms(self, size: int) -> float:
        """Returns the cost of one tile of a size of the ladder, in the unit of the costs."""
        return self._costs[size] / self._unit

    def covering_size(self, rows: int) -> int:
        """Returns the size of the cheapest single tile that holds ``rows`` rows; the largest where none does.

        Equal costs go to the smaller tile.
        """
        fits = [size for size in self.ladder if size >= rows]
        return min(fits, key=self._costs.__getitem__, default=self.largest)

    def paying_rows(self, rows: int) -> int | None:
        """Returns the least number above ``rows`` at which a row costs less than it does now.

        Only up to the largest size; None where no such number of rows is cheaper by the row.
        """
        if rows >= self.largest:
            return None
        if rows not in self._pays:
            self._pays[rows] = self._find_paying(rows)
        return self._pays[rows]

    def _find_paying(self, rows: int) -> int | None:
        now = self._total(rows)
        return next(
            (more for more in range(rows + 1, self.largest + 1) if self._total(more) * rows < now * more),
            None,
        )

    def _total(self, rows: int) -> int:
        cut, rest = self._cut(rows)
        return cut * self._costs[self._best] + self._cost[rest]

    def _cut(self, rows: int) -> tuple[int, int]:
        """Returns how many tiles of the best size are cut off, and the rows that the table answers."""
        if rows > self.window:
            cut = -((self.window - rows) // self._best)
            rows = max(0, rows - cut * self._best)
        else:
            cut = 0
        if rows >= len(self._cost):
            self._grow(rows)
        return cut, rows

    def _grow(self, rows: int) -> None:
        costs, launches, firsts = self._cost, self._launches, self._first
        for need in range(len(costs), rows + 1):
            least = None
            # Largest first: of equal ones the first stands, so no later tile of the tiling is larger.
            for size, cost in self._order:
                rest = need - size if need > size else 0
                found = (cost + costs[rest], launches[rest] + 1)
                if least is None or found < least:
                    least, first = found, size
            assert least is not None
            costs.append(least[0])
            launches.append(least[1])
            firsts.append(first)

    def _densest(self) -> int:
        best = self.ladder[-1]
        for size in reversed(self.ladder):
            if self._costs[size] * best < self._costs[best] * size:
                best = size
        return best

    def _rows_of_others(self) -> int:
        best, others = self._best, [size for size in self.ladder if size != self._best]
        each = sum((best // gcd(best, size) - 1) * size for size in others)
        return min(each, (best - 1) * max(others, default=0))
