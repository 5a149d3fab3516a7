"""Victims: who leaves so that a model fits. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tensorq_engines.residency.decision import Evict, Later
from tensorq_engines.residency.dwell import Dwell
from tensorq_engines.residency.policy import ResidentState
from tensorq_engines.residency.resident import Resident
from tensorq_engines.residency.room import Room


def choose_victims(
    wanted: Resident,
    others: Sequence[Resident],
    room: Room,
    now_s: float,
    waiting: Collection[str],
    dwell: Dwell,
) -> Evict | Later:
    """Returns whom to evict for a model that fits beside those that cannot leave, and not beside all.

    Models without queued work go first, least recently used first; one with queued work goes only where
    nothing else makes room, and not before it has dwelt.

    Args:
        wanted: the model to make room for.
        others: all other models that are charged.
        room: what there is.
        now_s: the time.
        waiting: names of models with work queued.
        dwell: how long a model with work queued stays.
    """
    if any(other.state is ResidentState.EVICTING for other in others):
        return Later("an eviction is under way")
    leavers = [other for other in others if other.may_leave and other.state is ResidentState.RESIDENT]
    dwelling = {
        other.name: until_s
        for other in leavers
        if other.name in waiting and (until_s := dwell.until_s(other)) > now_s
    }
    free = [other for other in leavers if other.name not in dwelling]
    free.sort(key=lambda other: (other.name in waiting, other.last_used_s, other.name))
    leave = _fewest(wanted, others, [other for other in free if not other.running], room)
    if leave:
        return Evict(leave)
    # An order that tiles which begin and end do not change, or each would be given up for another in turn.
    free.sort(key=lambda other: (other.loaded_at_s, other.name))
    if draining := _fewest(wanted, others, free, room):
        return Later(f"only {', '.join(draining)} could make room, running a tile", draining=draining)
    for until_s in sorted(set(dwelling.values())):
        gone = {other.name for other in leavers if dwelling.get(other.name, now_s) <= until_s}
        if _holds(wanted, others, gone, room):
            staying = ", ".join(sorted(name for name, end_s in dwelling.items() if end_s <= until_s))
            return Later(f"{staying} was loaded a moment ago and has work queued", until_s)
    loading = sorted(other.name for other in others if other.state is ResidentState.LOADING)
    return Later(f"only {', '.join(loading)} could make room, which is loading")


def _fewest(
    wanted: Resident, others: Sequence[Resident], candidates: Sequence[Resident], room: Room
) -> tuple[str, ...]:
    """Returns the first candidates that make room, less those that turn out not to be needed."""
    leave: list[str] = []
    for candidate in candidates:
        leave.append(candidate.name)
        if _holds(wanted, others, leave, room):
            break
    else:
        return ()
    # From the one that is missed most: where the last one alone makes room, the others were in vain.
    for name in reversed(tuple(leave)):
        rest = [other for other in leave if other != name]
        if _holds(wanted, others, rest, room):
            leave = rest
    return tuple(leave)


def _holds(wanted: Resident, others: Sequence[Resident], gone: Collection[str], room: Room) -> bool:
    return room.holds([wanted.footprint, *(other.footprint for other in others if other.name not in gone)])
