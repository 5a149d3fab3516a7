"""Fits: which of several models a budget holds at once. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from tensorq_engines.base.footprint import Footprint
from tensorq_engines.residency.account import Account, charge

EXACT_MODELS = 12
"""Up to so many models all subsets are tried."""


@dataclass(frozen=True, slots=True)
class Fit:
    """What a budget means for models that are all wanted.

    Attributes:
        account: what all of them need at once.
        held: those that fit, taken in the order given, each where it still fits.
        left: the others.
        never: those of them that do not fit even alone.
        evicted: of all models but those, the fewest that are not in memory at any time; taking turns over
            all of them loads at least as many anew.
    """

    account: Account
    held: tuple[str, ...]
    left: tuple[str, ...]
    never: tuple[str, ...]
    evicted: int


def fit(
    models: Mapping[str, Footprint], budget_bytes: int | None, lanes: int, *, shared: bool, slots: int
) -> Fit:
    """Returns which models fit.

    Args:
        models: footprints by name, in the order of preference.
        budget_bytes: what is there; None for no bound.
        lanes: how many run them.
        shared: whether a lane's models share one arena.
        slots: staging areas of a lane.
    """

    def account(names: Iterable[str]) -> Account:
        return charge([models[name] for name in names], lanes, shared=shared, slots=slots)

    def fits(names: Iterable[str]) -> bool:
        return budget_bytes is None or account(names).total_bytes <= budget_bytes

    held: tuple[str, ...] = ()
    for name in models:
        if fits((*held, name)):
            held = (*held, name)
    never = tuple(name for name in models if not fits((name,)))
    able = [name for name in models if name not in never]
    return Fit(
        account=account(models),
        held=held,
        left=tuple(name for name in models if name not in held),
        never=never,
        evicted=len(able) - _most(able, held, fits),
    )


def _most(able: Sequence[str], held: Sequence[str], fits: Callable[[Iterable[str]], bool]) -> int:
    """The most that fit at once; where there are too many to try all, what was found in their order."""
    if len(able) > EXACT_MODELS:
        return len(held)
    counts = range(len(able), 0, -1)
    return next((count for count in counts if any(map(fits, combinations(able, count)))), 0)
