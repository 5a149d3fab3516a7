"""Bound: how long a queue that is not empty can be without a tile. Pure.

For model m among others j, with load time l and stay s (how long a loaded model keeps its place while it
has work: `Residents.stay_s`), the dwell cap is twice the stay, and the bound is

    B(m) = sum over j != m of (l_j + 2 s_j)

Why it holds. A queue that has waited its patience P(m) = 1/2 sum over j != m of s_j is due, and

1. among resident models, due queues go before all others, the one that has waited longest first; after its
   tile a queue is behind every other that was due;
2. one model loads at a time. While a model that is not resident is due, only the one that has waited longest
   is loaded; it may take the place of any whose stay is over, which gets no further tile once a running one
   is all that is in the way; but who is due too and has not waited less gets its tile first.

From the moment m is due, each other model j can be in front at most once: once loaded it gets a tile (1, 2),
and from then on it has waited less than m. In front it costs its load and its stay, or its stay alone where
it was resident already: together at most sum (l_j + s_j), even where the memory holds one model at a time. A
load that was begun before m was due is one of these. Then m has its own load and the tiles in flight, for
which the other half of sum s_j is there; where they take longer, they stand in its place (`bound_ms`).

Nothing here asks how much work there is: it holds at utilisation below 1, and in overload. A load that fails,
one that takes longer than those before it, and a tile that is bisected are not counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

DWELL_CAP_STAYS = 2.0
PATIENCE_STAYS = 0.5


@dataclass(frozen=True, slots=True)
class ModelTimes:
    """What a model costs the others.

    Attributes:
        load_ms: its load.
        stay_ms: how long it keeps its place after a load while it has work.
    """

    load_ms: float
    stay_ms: float


def patience_ms(stays_ms: float, own_stay_ms: float) -> float:
    """Returns how long a queue waits before it is due.

    Args:
        stays_ms: the sum of the stays of all models that have work.
        own_stay_ms: the queue's own share of it.
    """
    return PATIENCE_STAYS * (stays_ms - own_stay_ms)


def bound_ms(model: str, times: Mapping[str, ModelTimes], lag_ms: float = 0.0) -> float:
    """Returns the longest that a queue can be not empty without a tile of it beginning.

    Args:
        model: whose queue.
        times: of all models that share the memory and the lanes.
        lag_ms: the longest from a resident queue being the one that has waited longest to its tile
            beginning: the tiles in flight, one more of each other model, and the wait for company.
    """
    others: Iterable[ModelTimes] = [one for name, one in times.items() if name != model]
    stays_ms = sum(one.stay_ms for one in others)
    ahead_ms = sum(one.load_ms + one.stay_ms for one in others) + PATIENCE_STAYS * stays_ms
    rest_ms = (DWELL_CAP_STAYS - 1 - PATIENCE_STAYS) * stays_ms
    return ahead_ms + max(rest_ms, times[model].load_ms + (len(times) + 1) * lag_ms)
