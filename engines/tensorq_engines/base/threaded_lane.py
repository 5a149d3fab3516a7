"""A lane whose stream is a thread, for engines that compute inside a call."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Mapping

import numpy as np

from tensorq_engines.base.admission import Shapes, describe
from tensorq_engines.base.engine import Engine, HostEngine
from tensorq_engines.base.errors import (
    EngineError,
    EngineFatal,
    LaneClosed,
    SlotMisuse,
    SlotTimeout,
    TileFailed,
)
from tensorq_engines.base.lane import MIN_SLOTS, Lane
from tensorq_engines.base.memory import LaneMemory
from tensorq_engines.base.outputs import check_outputs
from tensorq_engines.base.slot import Slot, SlotState
from tensorq_engines.base.staging import Staging


class ThreadedSlot(Slot):
    """A slot of a `ThreadedLane`."""

    def __init__(
        self, lane: ThreadedLane, engine: HostEngine, staging: Staging, shapes: Shapes, lock: threading.Lock
    ) -> None:
        super().__init__(engine.name, staging.lay_out(engine.signature, shapes), lock)
        self.lane = lane
        self._engine = engine
        self._staging = staging
        self._shapes = dict(shapes)
        self._finished = threading.Event()
        self._outputs: Mapping[str, np.ndarray] = {}
        self._failure: EngineError | None = None
        self._busy_s = 0.0

    def _await(self, timeout_s: float | None) -> Mapping[str, np.ndarray]:
        if not self._finished.wait(timeout_s):
            raise SlotTimeout(
                f"model {self.model!r}: tile {describe(self._shapes)} is not done after {timeout_s} s; "
                "wait() again"
            )
        if self._failure is not None:
            # The instance is raised from every wait: without this its traceback would grow each time.
            raise self._failure.with_traceback(None)
        return self._outputs

    def _busy(self) -> float:
        return self._busy_s

    def _free(self) -> None:
        self._outputs = {}
        self.lane._take_back(self._staging)

    def _run(self) -> None:
        with self._lock:
            self._state = SlotState.RUNNING
        try:
            if not self._engine.loaded:
                raise SlotMisuse(f"model {self.model!r} was closed while a tile of it waited to run")
            self._outputs = check_outputs(self._engine.signature, self._shapes, self._execute())
        except EngineError as exc:
            self._failure = exc
        except Exception as exc:
            failure = TileFailed(
                f"model {self.model!r}: tile {describe(self._shapes)} failed in {self._engine.kind}: "
                f"{type(exc).__name__}: {exc}"
            )
            failure.__cause__ = exc
            self._failure = failure
        finally:
            self._finish()

    def _execute(self) -> Mapping[str, np.ndarray]:
        started = time.perf_counter()
        try:
            return self._engine.execute(self._inputs)
        finally:
            self._busy_s = time.perf_counter() - started

    def _fail(self, failure: EngineError) -> None:
        self._failure = failure
        self._finish()

    def _finish(self) -> None:
        with self._lock:
            self._state = SlotState.DONE
            if isinstance(self._failure, EngineFatal):
                self.lane._fatal = self._failure
        self._finished.set()


class ThreadedLane(Lane):
    """Runs `HostEngine` tiles on one thread of its own, which starts with the first tile."""

    def __init__(self, slot_count: int = MIN_SLOTS) -> None:
        super().__init__(slot_count)
        self._lock = threading.Lock()
        self._free = [Staging() for _ in range(slot_count)]
        self._submitted: queue.SimpleQueue[ThreadedSlot | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None
        self._closed = False
        self._fatal: EngineFatal | None = None

    @property
    def memory(self) -> LaneMemory:
        """Nothing: engines have their own activations, and slots are neither page-locked nor on a device."""
        return LaneMemory()

    def acquire(self, engine: Engine, shapes: Shapes) -> Slot | None:
        """See `Lane.acquire`."""
        if not isinstance(engine, HostEngine) or engine.kind != self.kind:
            raise SlotMisuse(
                f"model {engine.name!r} is of kind {engine.kind!r}, and this lane runs {self.kind!r}"
            )
        if not engine.loaded:
            raise SlotMisuse(f"model {engine.name!r} is not loaded: call load() before acquire()")
        engine.check_shapes(shapes)
        with self._lock:
            self._expect_usable()
            if not self._free:
                return None
            staging = self._free.pop()
        try:
            return ThreadedSlot(self, engine, staging, shapes, self._lock)
        except BaseException:
            with self._lock:
                self._take_back(staging)
            raise

    def submit(self, slot: Slot) -> None:
        """See `Lane.submit`."""
        if not isinstance(slot, ThreadedSlot) or slot.lane is not self:
            raise SlotMisuse(f"slot of model {slot.model!r} is another lane's: submit it there")
        with self._lock:
            self._expect_usable()
            slot._expect("submit", SlotState.FILLING)
            slot._state = SlotState.SUBMITTED
            if self._thread is None:
                # A daemon, so that a tile that never ends cannot keep the process from ending.
                self._thread = threading.Thread(target=self._loop, name=f"{self.kind}-lane", daemon=True)
                self._thread.start()
            self._submitted.put(slot)

    def close(self) -> None:
        """See `Lane.close`."""
        with self._lock:
            thread = self._thread
            if not self._closed:
                self._closed = True
                self._free.clear()
                self._submitted.put(None)
        if thread is not None:
            thread.join()

    def _expect_usable(self) -> None:
        if self._fatal is not None:
            raise self._fatal.with_traceback(None)
        if self._closed:
            raise LaneClosed(f"this {self.kind} lane was closed: it takes no more tiles; use another lane")

    def _take_back(self, staging: Staging) -> None:
        if not self._closed:
            self._free.append(staging)

    def _loop(self) -> None:
        while (slot := self._submitted.get()) is not None:
            if self._fatal is None:
                slot._run()
            else:
                slot._fail(self._fatal)
