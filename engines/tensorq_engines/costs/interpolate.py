"""Interpolation between measured costs. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping


def interpolate(points: Mapping[int, float], at: int) -> float:
    """Returns the cost at ``at``, piecewise linear between the points and by the last slope beyond them.

    Beyond, it is never below what the point of the least cost per unit has for ``at``, nor, above the last
    point, below the least cost of all: so it stays positive. A single point stands for all in proportion.

    Args:
        points: positive costs by a positive whole number, at least one.
        at: a positive whole number.
    """
    if at in points:
        return points[at]
    xs = sorted(points)
    if len(xs) == 1:
        return points[xs[0]] * at / xs[0]
    index = min(max(bisect_left(xs, at), 1), len(xs) - 1)
    low, high = xs[index - 1], xs[index]
    share = (at - low) / (high - low)
    if 0 < share < 1:
        return points[low] * (1 - share) + points[high] * share
    line = points[low] + (points[high] - points[low]) * share
    return max(line, min(cost * min(1.0, at / x) for x, cost in points.items()))
