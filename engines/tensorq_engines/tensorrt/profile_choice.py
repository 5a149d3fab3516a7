"""Profile choice: which of several profiles runs a tile. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from tensorq_engines.base.admission import Shapes, describe
from tensorq_engines.base.errors import ShapeRefused
from tensorq_engines.base.profile import Profile

Rank = tuple[int, float, float, int]


def choose_profile(
    profiles: Sequence[Profile], shapes: Shapes, measured_ms: Mapping[int, float] | None = None
) -> int:
    """Returns the index of the profile to run a tile of ``shapes`` with.

    Of those that admit the shapes it is the one whose opt is nearest above them; where none lies above on
    every axis, the one whose opt is nearest at all. Measured time breaks ties, then order does.

    Args:
        profiles: at least one; one without ranges admits everything.
        shapes: one an input, the batch axis included.
        measured_ms: what tiles of these shapes took, by profile, where that is known.

    Raises:
        ShapeRefused: no profile admits the shapes; the message gives their ranges.
    """
    times = {} if measured_ms is None else measured_ms
    ranks = [
        _rank(index, profile, shapes, times.get(index, math.inf))
        for index, profile in enumerate(profiles)
        if profile.admits(shapes)
    ]
    if not ranks:
        raise ShapeRefused(
            f"got {describe(shapes)}, outside all profiles, which take {' or '.join(map(str, profiles))}; "
            "send shapes within them, or widen a [[profile]] in model.toml and build again"
        )
    return min(ranks)[-1]


def _rank(index: int, profile: Profile, shapes: Shapes, measured_ms: float) -> Rank:
    pairs = [pair for item in profile for pair in zip(item.opt, shapes[item.name], strict=True)]
    above = all(opt >= length for opt, length in pairs)
    distance = sum(abs(math.log(opt / length)) for opt, length in pairs)
    return (0 if above else 1, round(distance, 9), measured_ms, index)
