"""Choose: the tile to launch now, and the model to begin loading now. Pure.

A tile's cost is its time by row, and for a model that is not loaded also the load's, divided by all rows
that wait, since all of them will use it. The queue whose age is largest against that cost is next, unless
one is due: those go in the order in which they have waited (`bound` says what that guarantees).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import Generic

from tensorq_engines.residency.decision import Decision as Room
from tensorq_engines.residency.decision import Evict, Fits, Later, Never
from tensorq_worker.scheduler.bound import patience_ms
from tensorq_worker.scheduler.candidate import Candidate, Key

# Loads that are not due and find no room cost a look each at every tile.
MOST_LOOKS = 2


@dataclass(frozen=True, slots=True)
class Choice(Generic[Key]):
    """What to do now.

    Attributes:
        tile: whose tile to launch; None for none. Its model is resident and not about to be evicted.
        load: name of the model to begin loading; None for none. It fits or its victims can leave now, or it
            can never fit, which the attempt will say.
        again_ms: choose again in so many ms although nothing has happened; None where only an event helps.
    """

    tile: Candidate[Key] | None = None
    load: str | None = None
    again_ms: float | None = None


@dataclass(slots=True)
class _Queue(Generic[Key]):
    """A model's candidates together; ``first`` is the stage that is next of those ready, if any is."""

    any: Candidate[Key]
    rows: int = 0
    age_ms: float = 0.0
    first: Candidate[Key] | None = None


@dataclass(slots=True)
class _Loading:
    """What the choice of a load means for the tiles: ``leaving`` get no more."""

    model: str | None = None
    leaving: tuple[str, ...] = ()
    waits_ms: list[float] = field(default_factory=list)


def choose(
    candidates: Iterable[Candidate[Key]],
    room: Callable[[str], Room] | None = None,
    *,
    now_s: float = 0.0,
    loading: Collection[str] = (),
    lately: Collection[str] = (),
) -> Choice[Key]:
    """Returns what to do now; call again after each tile launched, and when anything has changed.

    Args:
        candidates: all stages that hold rows; those of a model whose load failed and is cooling down are
            left out, as their jobs fail.
        room: `Residents.room_for` for a model, with the models that have candidates as ``waiting``; not
            called for models that are resident or loading. None where all are resident.
        now_s: the time on the clock of ``room``.
        loading: the models that are being loaded: while there is one, no other load is chosen.
        lately: models that ran a tile within the last stay: without work, they make room only for one
            that is due.
    """
    queues = _queues(candidates)
    stays_ms, absent = 0.0, []
    for queue in queues.values():
        stays_ms += queue.any.stay_ms
        if not queue.any.resident:
            absent.append(queue)
    load = _Loading()
    if absent and room is not None and not loading:
        load = _choose_load(absent, queues, stays_ms, room, now_s, lately)
    best, best_due, best_rank, waits_ms = None, False, -1.0, load.waits_ms
    for queue in queues.values():
        one, first = queue.any, queue.first
        if not one.resident or not one.lane_free or one.model in load.leaving:
            continue
        if first is None:
            waits_ms.append(one.wait_ms)
            continue
        due = first.unserved_ms >= patience_ms(stays_ms, first.stay_ms)
        if best_due and not due:
            continue
        rank = first.unserved_ms if due else (first.age_ms + 1.0) * first.tile_rows / first.tile_ms
        if rank > best_rank or due > best_due:
            best, best_due, best_rank = first, due, rank
    return Choice(best, load.model, min(waits_ms, default=None))


def _queues(candidates: Iterable[Candidate[Key]]) -> dict[str, _Queue[Key]]:
    queues: dict[str, _Queue[Key]] = {}
    for one in candidates:
        queue = queues.get(one.model)
        if queue is None:
            queue = queues[one.model] = _Queue(one)
        queue.rows += one.rows
        if one.age_ms > queue.age_ms:
            queue.age_ms = one.age_ms
        if one.wait_ms > 0:
            if one.wait_ms < queue.any.wait_ms:
                queue.any = one
        elif queue.first is None or _before(one, queue.first):
            queue.first = one
    return queues


def _before(one: Candidate[Key], other: Candidate[Key]) -> bool:
    """Whether a stage is next before another of its model: the older, then the fuller tile."""
    if one.age_ms != other.age_ms:
        return one.age_ms > other.age_ms
    return one.tile_rows * other.tile_ms > other.tile_rows * one.tile_ms


def _choose_load(
    absent: Iterable[_Queue[Key]],
    queues: dict[str, _Queue[Key]],
    stays_ms: float,
    room: Callable[[str], Room],
    now_s: float,
    lately: Collection[str],
) -> _Loading:
    found = _Loading()
    head: _Queue[Key] | None = None
    patient = []
    for queue in absent:
        one = queue.any
        left_ms = patience_ms(stays_ms, one.stay_ms) - one.unserved_ms
        if left_ms > 0:
            found.waits_ms.append(left_ms)
            patient.append(queue)
        elif head is None or one.unserved_ms > head.any.unserved_ms:
            head = queue
    if head is not None:
        return _load_due(head.any, queues, stays_ms, room, now_s)
    patient.sort(key=_worth, reverse=True)
    for queue in patient[:MOST_LOOKS]:
        answer = room(queue.any.model)
        free = isinstance(answer, Evict) and not any(
            victim in queues or victim in lately for victim in answer.victims
        )
        if free or isinstance(answer, Fits | Never):
            return _Loading(queue.any.model, answer.victims if isinstance(answer, Evict) else ())
    return found


def _load_due(
    head: Candidate[Key],
    queues: dict[str, _Queue[Key]],
    stays_ms: float,
    room: Callable[[str], Room],
    now_s: float,
) -> _Loading:
    answer = room(head.model)
    leaving = answer.victims if isinstance(answer, Evict) else ()
    if isinstance(answer, Later):
        leaving = answer.draining
    # Who is due too and has not waited less gets its tile first.
    for other in (queues[name].any for name in leaving if name in queues):
        if other.unserved_ms >= max(head.unserved_ms, patience_ms(stays_ms, other.stay_ms)):
            return _Loading()
    if not isinstance(answer, Later):
        return _Loading(head.model, leaving)
    until_s = answer.until_s
    return _Loading(None, leaving, [] if until_s is None else [max(0.0, 1000 * (until_s - now_s))])


def _worth(queue: _Queue[Key]) -> float:
    """How much a load is worth: the queue's age against its cost by row, the load's share included."""
    one = queue.any
    row_ms = one.tile_ms / one.tile_rows + one.load_ms / queue.rows
    return (queue.age_ms + 1.0) / row_ms
