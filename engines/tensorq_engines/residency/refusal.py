"""Refusal: the words for a model that cannot fit, with numbers and what to change. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from tensorq_engines.residency.policy import LoadPolicy
from tensorq_engines.residency.resident import Resident
from tensorq_engines.residency.room import Room

MIB = 2**20


def size(count: int) -> str:
    """Returns a number of bytes as people read it."""
    return f"{count / MIB:,.1f} MiB" if count >= MIB else f"{count:,} bytes"


def refusal(wanted: Resident, staying: Sequence[Resident], room: Room) -> str:
    """Returns why a model does not fit.

    Args:
        wanted: the model.
        staying: the models that it would have to fit beside.
        room: what there is, too small for all of them.
    """
    account = room.charge([model.footprint for model in (wanted, *staying)])
    limit = room.limit_bytes
    alone = room.charge([wanted.footprint])
    head = f"model {wanted.name!r} ({wanted.policy}) does not fit"
    beside = f" beside what stays, {', '.join(map(_name, staying))}" if staying else ""
    parts, raises = [], []
    if limit is not None and account.total_bytes > limit:
        less = f" less {size(room.unaccounted_bytes)} unaccounted for" if room.unaccounted_bytes else ""
        raises.append("raise the budget")
        parts.append(
            f"{size(account.total_bytes)} are needed (weights {size(account.weights_bytes)}, contexts "
            f"{size(account.contexts_bytes)}, activations {size(account.arenas_bytes)}, inputs and outputs "
            f"{size(account.io_bytes)}, on {_count(room.lanes, 'lane')}; alone it takes "
            f"{size(alone.total_bytes)}), and the budget is {size(room.budget_bytes or 0)}{less}: "
            f"{size(account.total_bytes - limit)} too little"
        )
    pinned = room.pinned_limit_bytes
    if pinned is not None and account.pinned_bytes > pinned:
        raises.append("raise the limit of page-locked memory")
        parts.append(
            f"{size(account.pinned_bytes)} of page-locked memory are needed "
            f"({_count(room.lanes, 'lane')} of {room.slots} slots), and the limit is {size(pinned)}: "
            f"{size(account.pinned_bytes - pinned)} too little"
        )
    return f"{head}{beside}: {'; '.join(parts)}; {_remedies(wanted, staying, room.lanes, raises)}"


def _remedies(wanted: Resident, staying: Sequence[Resident], lanes: int, raises: Sequence[str]) -> str:
    remedies = ["lower the max of its largest profile"]
    if lanes > 1:
        remedies.append(f"use fewer than {lanes} lanes")
    remedies += raises
    if wanted.policy is not LoadPolicy.LRU and any(model.may_leave for model in staying):
        remedies.append("load it with 'lru', which may evict others")
    if pinned := [model.name for model in staying if model.pinned]:
        remedies.append(f"unpin {', '.join(pinned)}")
    if firm := [model.name for model in staying if not model.pinned and not model.may_leave]:
        remedies.append(f"load {', '.join(firm)} with 'lru'")
    return f"{', '.join(remedies[:-1])}, or {remedies[-1]}"


def _name(model: Resident) -> str:
    return f"{model.name!r} ({'pinned' if model.pinned else model.policy})"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" + ("s" if number != 1 else "")
