"""Pools: the worker's models by the memory that they compute in."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import ExitStack

from tensorq_engines import Engine, Lane, LoadPolicy, Residency, Residents, create_gauge

log = logging.getLogger("rq.worker")

MIB = 1024 * 1024
SHARE_OF_FREE = 0.9


class Pools:
    """One `Residency` for each kind of engine, made with the first model of that kind.

    Args:
        lanes: of each kind.
        slots: staging areas of a lane.
        budget_bytes: what the models of a kind may take; None for nine tenths of the device memory that is
            free when the first one is added, and no limit where the engine computes in host memory.
        pinned_bytes: page-locked host memory that all slots of a kind may take; None for no limit.
        changed: called from other threads when a load or an eviction has ended.
    """

    def __init__(
        self,
        lanes: int = 1,
        slots: int = 2,
        *,
        budget_bytes: int | None = None,
        pinned_bytes: int | None = None,
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        self._lanes = lanes
        self._slots = slots
        self._budget_bytes = budget_bytes
        self._pinned_bytes = pinned_bytes
        self._changed = changed
        self._dirty = False
        self._kinds: dict[str, Residency] = {}
        self._homes: dict[str, Residency] = {}

    def add(self, engine: Engine, policy: LoadPolicy, pinned: bool) -> None:
        """Takes over an engine that is not loaded.

        Raises:
            ModelLoadFailed: the engine cannot be described.
        """
        pool = self._kinds.get(engine.kind)
        if pool is None:
            pool = self._kinds[engine.kind] = self._open(engine)
        pool.add(engine, policy, pinned)
        self._homes[engine.name] = pool

    def attach(self, lane: Lane) -> None:
        """Counts a lane's memory from here on; a model of its kind was added before."""
        self._kinds[lane.kind].attach(lane)

    def __getitem__(self, name: str) -> Residency:
        """The pool of a model that was added."""
        return self._homes[name]

    def __contains__(self, name: object) -> bool:
        return name in self._homes

    @property
    def loading(self) -> list[str]:
        """The models that are being loaded, at most one of each kind."""
        return [name for pool in self._kinds.values() if (name := pool.loading) is not None]

    def lately(self) -> set[str]:
        """The resident models that were used within their stay."""
        return set().union(*(pool.lately() for pool in self._kinds.values()))

    def take_changes(self) -> bool:
        """Tells whether a load or an eviction has ended since this was last asked."""
        dirty, self._dirty = self._dirty, False
        return dirty

    def rebase(self) -> None:
        """Takes what the driver shows now, models apart, as the process's own; call it after warming."""
        for pool in self._kinds.values():
            pool.rebase()

    def check(self) -> None:
        """Compares the accounts with the driver's, and logs where they differ.

        Raises:
            EngineFatal: the process must end.
        """
        for kind, pool in self._kinds.items():
            found = pool.check_integrity()
            if not found.agrees:
                log.warning(
                    "memory of %s models: engines and lanes have %.0f MiB, the driver shows %.0f MiB more",
                    kind,
                    found.taken_bytes / MIB,
                    found.drift_bytes / MIB,
                )

    def close(self) -> None:
        """Closes all engines; no tile may be running. Idempotent."""
        with ExitStack() as stack:
            for pool in self._kinds.values():
                stack.callback(pool.close)

    def _open(self, engine: Engine) -> Residency:
        gauge = create_gauge(engine.kind)
        budget_bytes = self._budget_bytes
        if budget_bytes is None and (free_bytes := gauge.free_bytes()) is not None:
            budget_bytes = int(SHARE_OF_FREE * free_bytes)
        residents = Residents(
            budget_bytes,
            self._lanes,
            shared=engine.shares_activations,
            slots=self._slots,
            pinned_limit_bytes=self._pinned_bytes,
        )
        return Residency(residents, gauge, clock=lambda: time.monotonic(), changed=self._note)

    def _note(self) -> None:
        self._dirty = True
        self._changed()
