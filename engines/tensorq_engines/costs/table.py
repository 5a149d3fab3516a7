"""Cost table: the cost of one model's tiles by the shapes of a row and the size. Pure."""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from statistics import median

from tensorq_engines.costs.interpolate import interpolate

RowShapes = tuple[tuple[int, ...], ...]
"""The shape of a row of each input, in the signature's order."""

Costs = Mapping[RowShapes, Mapping[int, float]]

LAUNCH_ROWS = 4
"""What a launch is assumed to cost, in rows."""

OBSERVATIONS = 20
TOLERANCE = 0.1
MAX_SHAPES = 256
MAX_WATCHED = 1024


def assumed_costs(ladder: Iterable[int]) -> dict[int, float]:
    """Returns the cost of a tile by its size, in rows, while nothing is known: its own and a launch's."""
    return {size: float(size + LAUNCH_ROWS) for size in ladder}


class CostTable:
    """What is known of tiles' costs, in ms, and what that says of others.

    A size that was not measured lies on the line between the two measured at the same shape around it, or
    beyond them on the last one's. Rows of a shape that was not measured lie between the measured shapes of
    the next fewer and the next more elements, at the same size; where one size of that shape is known, by
    its factor above or below that. Where nothing is known, costs are `assumed_costs`, in no unit of time.

    Known costs are replaced whole, so that any thread may read while others `observe`.

    Attributes:
        version: rises whenever a known cost changes.
    """

    def __init__(self, known: Costs | None = None) -> None:
        """Makes a table.

        Args:
            known: costs in ms, as `known` gives them.

        Raises:
            ValueError: a cost or a size is not positive and finite.
        """
        self.version = 0
        self._lock = threading.Lock()
        self._known: dict[RowShapes, dict[int, float]] = {}
        self._watched: OrderedDict[tuple[RowShapes, int], list[float]] = OrderedDict()
        for row_shapes, costs_ms in (known or {}).items():
            self.put(row_shapes, costs_ms)

    @property
    def known(self) -> Costs:
        """Measured and refined costs in ms, by the shapes of a row and the size; not to be changed."""
        return self._known

    def put(self, row_shapes: RowShapes, costs_ms: Mapping[int, float]) -> None:
        """Takes measured costs by size, in place of what was known of these.

        Raises:
            ValueError: a cost or a size is not positive and finite.
        """
        for size, cost_ms in costs_ms.items():
            if size < 1 or not 0 < cost_ms < math.inf:
                raise ValueError(
                    f"got a cost of {cost_ms} ms for a tile of {size} rows, expected positive, finite numbers"
                )
        with self._lock:
            self._publish(row_shapes, costs_ms)

    def observe(self, row_shapes: RowShapes, size: int, busy_ms: float) -> None:
        """Takes note of what a tile took, other lanes idle; from any thread.

        The estimate is the median of each `OBSERVATIONS`; the known cost follows when it differs by more than
        `TOLERANCE`, or where there was none.
        """
        if not 0 < busy_ms < math.inf:
            return
        with self._lock:
            seen = self._watched.setdefault((row_shapes, size), [])
            seen.append(busy_ms)
            if len(seen) < OBSERVATIONS:
                if len(self._watched) > MAX_WATCHED:
                    self._watched.popitem(last=False)
                return
            del self._watched[row_shapes, size]
            estimate_ms, known_ms = median(seen), self._known.get(row_shapes, {}).get(size)
            if known_ms is None or abs(estimate_ms - known_ms) > TOLERANCE * known_ms:
                self._publish(row_shapes, {size: estimate_ms})

    def costs_ms(self, row_shapes: RowShapes, ladder: Iterable[int]) -> dict[int, float]:
        """Returns the cost of a tile by its size: positive and finite."""
        known = self._known
        return {size: _cost(known, row_shapes, size) for size in ladder}

    def _publish(self, row_shapes: RowShapes, costs_ms: Mapping[int, float]) -> None:
        # Ever new shapes must not add up: the others lie between those that are known.
        if row_shapes not in self._known and len(self._known) >= MAX_SHAPES:
            return
        self._known = {**self._known, row_shapes: {**self._known.get(row_shapes, {}), **costs_ms}}
        self.version += 1


def _cost(known: Costs, row_shapes: RowShapes, size: int) -> float:
    own = known.get(row_shapes, {})
    if size in own or len(own) > 1:
        return interpolate(own, size)
    others = {shapes: costs for shapes, costs in known.items() if shapes != row_shapes and costs}
    guess = _between(others, row_shapes, size)
    if not own:
        return guess
    (at, cost) = next(iter(own.items()))
    return cost * guess / _between(others, row_shapes, at)


def _between(known: Costs, row_shapes: RowShapes, size: int) -> float:
    if not known:
        return float(size + LAUNCH_ROWS)
    measured = {shapes: costs for shapes, costs in known.items() if size in costs} or known
    points: dict[int, float] = {}
    for shapes, costs in measured.items():
        count = _elements(shapes)
        points[count] = max(points.get(count, 0.0), _by_size(costs, size))
    return interpolate(points, _elements(row_shapes))


def _by_size(costs: Mapping[int, float], size: int) -> float:
    if len(costs) == 1:
        (at, cost) = next(iter(costs.items()))
        return cost * (size + LAUNCH_ROWS) / (at + LAUNCH_ROWS)
    return interpolate(costs, size)


def _elements(row_shapes: RowShapes) -> int:
    return max(1, sum(math.prod(shape) for shape in row_shapes))
