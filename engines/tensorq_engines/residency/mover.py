"""Mover: carries a load out, with the evictions that it needs. Runs on the loader's thread."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from tensorq_engines.base.errors import EngineFatal, ModelDoesNotFit, ModelLoadFailed
from tensorq_engines.base.footprint import Footprint
from tensorq_engines.residency.books import Books
from tensorq_engines.residency.decision import Decision, Evict, Fits, Later, Never
from tensorq_engines.residency.policy import ResidentState
from tensorq_engines.residency.refusal import size
from tensorq_engines.residency.residents import Residents

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Task:
    """A load that was begun.

    Attributes:
        name: the model to load.
        waiting: names of models with work queued, as the request told.
        decision: what the request was answered, Fits or Evict.
    """

    name: str
    waiting: frozenset[str]
    decision: Decision


class Mover:
    """Holds the lock for decisions only, never while an engine loads or closes.

    Attributes:
        failures: each model's last load that failed, by name; read under the lock.
    """

    def __init__(
        self,
        residents: Residents,
        books: Books,
        lock: threading.Condition,
        clock: Callable[[], float],
        may_go_on: Callable[[], bool],
    ) -> None:
        """Keeps what it is told.

        Args:
            residents: decides; used under the lock.
            books: has the engines.
            lock: the owner's.
            clock: in seconds.
            may_go_on: asked under the lock after evictions; the load is left undone where it says no.
        """
        self.failures: dict[str, ModelLoadFailed] = {}
        self._residents = residents
        self._books = books
        self._lock = lock
        self._clock = clock
        self._may_go_on = may_go_on

    def decide(self, name: str, waiting: Collection[str]) -> Decision:
        """Asks what a load needs, and takes its first step; the caller holds the lock."""
        now_s = self._clock()
        absent = self._residents[name].state is not ResidentState.RESIDENT
        decision = self._residents.room_for(name, now_s, waiting)
        if isinstance(decision, Evict):
            self._begin_evictions(decision)
        elif isinstance(decision, Fits) and absent:
            self._residents.begin_load(name, now_s)
        elif isinstance(decision, Never) and self._residents[name].reason != decision.message:
            log.error("%s", decision.message)
            self._residents.refused(name, decision.message)
        return decision

    def carry_out(self, task: Task) -> None:
        """Loads a model after its first step was taken.

        Raises:
            EngineFatal: the process must end.
        """
        decision = task.decision
        while isinstance(decision, Evict):
            self._evict(decision, task.name)
            with self._lock:
                if not self._may_go_on():
                    return
                # What the driver kept counts now, and others may have begun tiles.
                decision = self.decide(task.name, task.waiting)
        if isinstance(decision, Fits):
            self._load(task)
        else:
            log.warning("model %r is not loaded after evictions: %s", task.name, decision)

    def _load(self, task: Task) -> None:
        name, engine = task.name, self._books.engines[task.name]
        self._books.settle(self._books.read())
        started_s = time.perf_counter()
        try:
            engine.load()
            load_s = time.perf_counter() - started_s
            footprint = replace(engine.footprint, weights_bytes=engine.memory.weights_bytes)
        except EngineFatal:
            raise
        except ModelLoadFailed as exc:
            self._fail(name, exc)
        except Exception as exc:
            failure = ModelLoadFailed(f"model {name!r} cannot be loaded: {type(exc).__name__}: {exc}")
            failure.__cause__ = exc
            self._fail(name, failure)
        else:
            self._settle_in(task, footprint, load_s)

    def _settle_in(self, task: Task, footprint: Footprint, load_s: float) -> None:
        """Ends a load that succeeded; the model may be larger than it was predicted to be."""
        name, engine = task.name, self._books.engines[task.name]
        while True:
            self._books.settle(self._books.read())
            with self._lock:
                self._residents.correct(name, footprint)
                now_s = self._clock()
                decision = self._residents.room_to_stay(name, now_s, task.waiting)
                if isinstance(decision, Evict):
                    self._begin_evictions(decision)
                elif not isinstance(decision, Never):
                    self._residents.loaded(name, now_s, load_s)
            if not isinstance(decision, Evict):
                break
            self._evict(decision, name)
        if isinstance(decision, Never):
            engine.close()
            self._fail(name, ModelDoesNotFit(decision.message))
            return
        if isinstance(decision, Later):
            log.warning("model %r takes more than there is: %s", name, decision.reason)
        taken = size(engine.memory.total_bytes)
        log.info("model %r was loaded in %.0f ms and takes %s", name, 1e3 * load_s, taken)

    def _fail(self, name: str, failure: ModelLoadFailed) -> None:
        with self._lock:
            now_s = self._clock()
            self.failures[name] = failure
            self._residents.failed(name, now_s, str(failure))
            pause_s = self._residents[name].retry_at_s - now_s
        log.error("%s; it is not tried again for %.0f s", failure, pause_s)

    def _begin_evictions(self, decision: Evict) -> None:
        for victim in decision.victims:
            self._residents.begin_eviction(victim)

    def _evict(self, decision: Evict, wanted: str) -> None:
        for name in decision.victims:
            before = self._books.read()
            self._books.settle(before)
            started_s = time.perf_counter()
            try:
                self._books.engines[name].close()
            except EngineFatal:
                raise
            except Exception:
                log.exception("model %r was evicted, and its close failed", name)
            close_ms = 1e3 * (time.perf_counter() - started_s)
            after = self._books.read()
            self._books.end_eviction(name, after)
            gave = size(max(before.taken_bytes - after.taken_bytes, 0))
            unaccounted = size(self._residents.unaccounted_bytes)
            log.info(
                "model %r was evicted for %r in %.0f ms: it gave %s back, %s are unaccounted for",
                *(name, wanted, close_ms, gave, unaccounted),
            )
