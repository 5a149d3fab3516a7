"""Residency: the models of one pool of memory, loaded and evicted under its budget."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection
from contextlib import ExitStack

from tensorq_engines.base.engine import Engine
from tensorq_engines.base.errors import (
    EngineFatal,
    ModelDoesNotFit,
    ResidencyClosed,
)
from tensorq_engines.base.lane import Lane
from tensorq_engines.residency.books import Books
from tensorq_engines.residency.decision import Decision, Evict, Fits, Later, Never
from tensorq_engines.residency.gauge import Gauge
from tensorq_engines.residency.ledger import Integrity
from tensorq_engines.residency.loader import Loader
from tensorq_engines.residency.mover import Mover, Task
from tensorq_engines.residency.policy import LoadPolicy, ResidentState
from tensorq_engines.residency.resident import Resident
from tensorq_engines.residency.residents import Residents
from tensorq_engines.residency.snapshot import Snapshot

log = logging.getLogger(__name__)


class Residency:
    """Owns the engines that are added to it. Methods may be called from any thread.

    Loads and evictions run on one thread, one load with its evictions at a time, and no lock is held
    meanwhile. After an `EngineFatal` every call but `done`, `snapshot` and `close` raises it.
    """

    def __init__(
        self,
        residents: Residents,
        gauge: Gauge,
        *,
        clock: Callable[[], float] = time.monotonic,
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        """Keeps what it is told; threads and devices come with the first request.

        Args:
            residents: decides; from here on only this object calls it.
            gauge: of the memory that the models take.
            clock: in seconds.
            changed: called on the loader's thread, without locks, when a request has ended, well or not.
        """
        self._residents = residents
        self._clock = clock
        self._changed = changed
        self._state = threading.Condition()
        self._books = Books(residents, gauge, self._state)
        self._mover = Mover(residents, self._books, self._state, clock, lambda: not self._closed)
        self._loader = Loader()
        self._version = 0
        self._task: Task | None = None
        self._tasks = 0
        self._fatal: EngineFatal | None = None
        self._closed = False

    def add(self, engine: Engine, policy: LoadPolicy = LoadPolicy.LRU, pinned: bool = False) -> None:
        """Takes an engine that is not loaded over.

        Raises:
            ModelLoadFailed: the engine cannot be described.
            ValueError: its name is taken, or the account shares activations and the engine does not.
        """
        if self._residents.shared and not engine.shares_activations:
            raise ValueError(
                f"model {engine.name!r} runs on {engine.kind}, whose models share no activations: "
                "its pool needs Residents(shared=False)"
            )
        footprint = engine.footprint
        with self._state:
            self._residents.add(engine.name, footprint, policy, pinned)
            self._books.engines[engine.name] = engine

    def attach(self, lane: Lane) -> None:
        """Counts a lane's memory from here on.

        Raises:
            ValueError: the account has fewer lanes.
        """
        with self._state:
            if len(self._books.lanes) == self._residents.lanes:
                raise ValueError(f"the account is of {self._residents.lanes} lanes, got one more")
            self._books.lanes.append(lane)

    def __getitem__(self, name: str) -> Resident:
        """Returns a model's record, which only this object changes, and may at any moment.

        Raises:
            KeyError: it was not added.
        """
        return self._residents[name]

    @property
    def loading(self) -> str | None:
        """The model that is being loaded, its evictions included; None while none is."""
        task = self._task
        return None if task is None else task.name

    def stay_s(self, name: str) -> float:
        """Returns how long a model keeps its place after a load while it has work queued."""
        return self._residents.stay_s(name)

    def lately(self) -> set[str]:
        """Returns the resident models that were loaded or ran a tile within their stay."""
        with self._state:
            return self._residents.lately(self._clock())

    def room_for(self, name: str, waiting: Collection[str] = ()) -> Decision:
        """Returns what a load of a model would need now, and starts nothing; see `Residents.room_for`."""
        with self._state:
            return self._residents.room_for(name, self._clock(), waiting)

    def request(self, name: str, waiting: Collection[str] = ()) -> Decision:
        """Starts a load, with its evictions, where it can begin now; returns at once.

        Args:
            name: the model.
            waiting: names of models with work queued, which others do not make way for if it can be helped.

        Returns:
            Fits or Evict where the model is resident or under way, which it is from one request to the next
            until `changed` is called; Later or Never where nothing was started.

        Raises:
            EngineFatal: an earlier load or eviction left the process unusable.
            ResidencyClosed: `close` was called.
        """
        decision = self._begin(name, waiting)
        if isinstance(decision, Never) and self._residents.unaccounted_bytes:
            # Jobs fail for it: the driver may have given the memory back by now.
            self.check_integrity()
            decision = self._begin(name, waiting)
        return decision

    def ensure(self, name: str, waiting: Collection[str] = ()) -> Engine:
        """Returns a model's engine, loaded; waits for its load and for what stands in its way.

        It can be evicted again at once, unless its policy or a pin keeps it. A caller that has tiles running
        must not wait here: they may be what stands in the way.

        Raises:
            ModelDoesNotFit: there is no room for it as things are configured.
            ModelLoadFailed: it failed, now or so lately that it is not tried again yet.
            EngineFatal: see `request`.
            ResidencyClosed: see `request`.
        """
        while True:
            with self._state:
                seen = self._version
            decision = self.request(name, waiting)
            with self._state:
                self._expect_usable()
                model = self._residents[name]
                if model.state is ResidentState.RESIDENT:
                    return self._books.engines[name]
                if isinstance(decision, Never):
                    raise ModelDoesNotFit(decision.message)
                now_s = self._clock()
                if model.state is ResidentState.FAILED and now_s < model.retry_at_s:
                    # The instance is raised to every caller: without this its traceback would grow each time.
                    raise self._mover.failures[name].with_traceback(None)
                until_s = decision.until_s if isinstance(decision, Later) else None
                if self._version == seen:
                    self._state.wait(None if until_s is None else max(until_s - now_s, 0.0))

    def use(self, name: str) -> Engine | None:
        """Begins a tile: returns the engine, which stays until `done`; None where it is not resident.

        Raises:
            EngineFatal: see `request`.
            ResidencyClosed: see `request`.
        """
        with self._state:
            self._expect_usable()
            if self._residents[name].state is not ResidentState.RESIDENT:
                return None
            self._residents.use(name, self._clock())
            return self._books.engines[name]

    def done(self, name: str) -> None:
        """Ends a tile; once for each `use`."""
        with self._state:
            self._residents.done(name, self._clock())
            self._note_change()

    def check_integrity(self) -> Integrity:
        """Compares the account with the driver's; what the driver gave back meanwhile is budget again.

        Raises:
            EngineFatal: see `request`.
            ResidencyClosed: see `request`.
        """
        with self._state:
            self._expect_usable()
            quiet, seen = self._task is None, self._tasks
        reading = self._books.read()
        with self._state:
            # While a load or an eviction is under way the two accounts are not of one moment.
            if quiet and self._tasks == seen:
                self._books.settle(reading)
            return self._books.integrity(reading)

    def rebase(self) -> None:
        """Takes what the driver shows now, beyond what the account has, as the process's own.

        The first reading is such a baseline; a better one comes after a warmed pass, when the runtime has
        loaded its kernels.
        """
        self._books.rebase(self._books.read())

    def snapshot(self, name: str) -> Snapshot:
        """Returns what there is to see of a model now.

        Raises:
            KeyError: it was not added.
        """
        memory = self._books.engines[name].memory
        with self._state:
            model, now_s = self._residents[name], self._clock()
            failed = model.state is ResidentState.FAILED
            return Snapshot(
                name,
                model.policy,
                model.pinned,
                model.state,
                model.footprint,
                memory,
                now_s - model.last_used_s if model.loads else None,
                model.hits,
                model.loads,
                model.evictions,
                model.failures,
                1e3 * model.load_s,
                max(model.retry_at_s - now_s, 0.0) if failed else 0.0,
                model.reason,
            )

    def close(self) -> None:
        """Ends the loader, after the load that it is at, then closes the engines; idempotent.

        The caller has no tile running. Whoever waits in `ensure` gets `ResidencyClosed`.
        """
        with self._state:
            self._closed = True
            self._note_change()
        self._loader.close()
        with ExitStack() as stack:
            for engine in self._books.engines.values():
                stack.callback(engine.close)

    def _begin(self, name: str, waiting: Collection[str]) -> Decision:
        with self._state:
            self._expect_usable()
            if self._residents[name].state is ResidentState.RESIDENT:
                return Fits()
            if self._task is not None:
                if self._task.name == name:
                    return self._task.decision
                return Later(f"model {self._task.name!r} is being loaded")
            decision = self._mover.decide(name, waiting)
            if isinstance(decision, Fits | Evict):
                task = self._task = Task(name, frozenset(waiting), decision)
                self._tasks += 1
                self._loader.submit(lambda: self._work(task))
            return decision

    def _work(self, task: Task) -> None:
        try:
            self._mover.carry_out(task)
        except EngineFatal as exc:
            log.critical("model %r: %s", task.name, exc)
            with self._state:
                self._fatal = exc
        except Exception as exc:
            log.exception("model %r: residency is broken", task.name)
            with self._state:
                self._fatal = EngineFatal(f"residency is broken: {type(exc).__name__}: {exc}; restart")
                self._fatal.__cause__ = exc
        with self._state:
            self._task = None
            self._note_change()
        try:
            self._changed()
        except Exception:
            log.exception("what was to be told of model %r failed", task.name)

    def _note_change(self) -> None:
        self._version += 1
        self._state.notify_all()

    def _expect_usable(self) -> None:
        if self._fatal is not None:
            raise self._fatal.with_traceback(None)
        if self._closed:
            raise ResidencyClosed("residency was closed: nothing is loaded any more")
