"""Cycles: random models of six under a budget that holds few of them, checked after every one."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from ops.bench.gpu.residency.engines import TimedEngine
from ops.bench.gpu.residency.pool import Pool, Request
from ops.bench.gpu.residency.reference import Reference

from tensorq_engines import EngineFatal, Integrity, Residents, ResidentState

MIB = 2**20
FLAT_BYTES = 16 * MIB
SPARE_BYTES = 32_000_000
"""What the budget leaves beside the largest model: twice what the accounts may differ by, and little more."""
MOST_FAILURES = 10
EARLY = 0.1
"""Share of the cycles at both ends in which the same set of models is looked for."""


@dataclass
class Log:
    """What cycles showed.

    Attributes:
        done: cycles.
        failures: in words; the first few.
        drifts: the driver's bytes less the ledger's, after each cycle.
        disagreements: cycles after which the two were further apart than they may be.
        unaccounted: the most bytes that evictions took from the budget.
        early, late: the driver's bytes in use by set of resident models: first and last seen.
        first_run_ms: a model's first tiles after loads, less the same tile again.
    """

    done: int = 0
    failures: list[str] = field(default_factory=list)
    drifts: list[int] = field(default_factory=list)
    disagreements: list[str] = field(default_factory=list)
    unaccounted: int = 0
    early: dict[frozenset[str], int] = field(default_factory=dict)
    late: dict[frozenset[str], int] = field(default_factory=dict)
    first_run_ms: dict[str, list[float]] = field(default_factory=dict)

    def note(self, seen: Integrity) -> None:
        """Keeps how the ledger and the driver compare after a cycle."""
        self.done += 1
        self.drifts.append(seen.drift_bytes)
        self.unaccounted = max(self.unaccounted, seen.unaccounted_bytes)
        if not seen.agrees:
            self.disagreements.append(
                f"cycle {self.done}: driver {(seen.driver_bytes or 0) / MIB:.1f} MiB, "
                f"ledger {seen.taken_bytes / MIB:.1f} MiB"
            )

    @property
    def drift_growth(self) -> int:
        """How much further the driver's figure is above the ledger's in the end than it was to begin with."""
        edge = max(1, int(EARLY * len(self.drifts)))
        return int(median(self.drifts[-edge:] or [0]) - median(self.drifts[:edge] or [0]))

    @property
    def growth(self) -> int | None:
        """The most that the driver's figure grew with the same models resident; None: none came again."""
        both = [self.late[names] - used for names, used in self.early.items() if names in self.late]
        return max(both, default=None)


def tight_budget(engines: Sequence[TimedEngine], lanes: int) -> int:
    """Returns a budget in bytes that holds each model, and few beside the larger ones."""
    alone = Residents(None, lanes)
    for engine in engines:
        alone.add(engine.name, engine.footprint)
    return SPARE_BYTES + max(alone.predict([engine.name]).total_bytes for engine in engines)


class Cycles:
    """Runs cycles on one lane, or on several at once: each lane runs a tile of a model of its own choice.

    Attributes:
        log: what was seen.
    """

    def __init__(
        self, pool: Pool, references: Mapping[str, Reference], seed: int = 0, limit_s: float = 120.0
    ) -> None:
        self.log = Log()
        self._pool = pool
        self._references = references
        self._random = random.Random(seed)
        self._limit_s = limit_s
        self._names = sorted(references)

    def warm(self) -> None:
        """Runs one pass of all models, and takes what the driver shows then as the baseline."""
        for name in self._names:
            self._pool.warm(name)
        self._pool.residency.rebase()

    def run(self, count: int) -> None:
        """Runs ``count`` cycles, fewer where the time ends or too much fails."""
        until_s = time.perf_counter() + self._limit_s
        edge = max(1, int(EARLY * count))
        with ThreadPoolExecutor(len(self._pool.lanes)) as threads:
            for number in range(count):
                choices = [self._choose() for _ in self._pool.lanes]
                try:
                    list(threads.map(self._turn, range(len(choices)), *zip(*choices, strict=True)))
                except EngineFatal as exc:
                    self.log.failures.append(f"cycle {number}: {exc}")
                    return
                self._look(early=number < edge, late=number >= count - edge)
                if len(self.log.failures) >= MOST_FAILURES or time.perf_counter() > until_s:
                    return

    def _choose(self) -> tuple[str, int]:
        name = self._random.choice(self._names)
        return name, self._random.choice(sorted(self._references[name].tiles))

    def _turn(self, lane: int, name: str, rows: int) -> None:
        try:
            first = self._request(lane, name, rows)
            if first.loaded:
                again = self._request(lane, name, rows)
                if not again.loaded:
                    self.log.first_run_ms.setdefault(name, []).append(first.run_ms - again.run_ms)
        except EngineFatal:
            raise
        except Exception as exc:
            self.log.failures.append(f"cycle {self.log.done}, {name}: {type(exc).__name__}: {exc}")

    def _request(self, lane: int, name: str, rows: int) -> Request:
        reference = self._references[name]
        request = self._pool.request(name, reference.tiles[rows], lane)
        if wrong := reference.check(rows, request.outputs):
            self.log.failures.append(f"cycle {self.log.done}, {name}: {wrong}")
        return request

    def _look(self, *, early: bool, late: bool) -> None:
        self.log.note(self._pool.residency.check_integrity())
        # On several lanes memory depends on which of them ran what last: there the drift alone tells.
        if len(self._pool.lanes) > 1:
            return
        names = frozenset(
            model.name for model in self._pool.residents if model.state is ResidentState.RESIDENT
        )
        if early:
            self.log.early.setdefault(names, self._pool.used_bytes)
        if late:
            self.log.late[names] = self._pool.used_bytes


def describe(cycles: Cycles, pool: Pool, wanted: int) -> dict[str, Any]:
    """Returns the log as JSON has it, with ``faults``."""
    log, lanes = cycles.log, len(pool.lanes)
    drifts = sorted(log.drifts) or [0]
    found = {
        "cycles": log.done,
        "lanes": lanes,
        "budget_bytes": pool.residents.budget_bytes,
        "loads": {model.name: model.loads for model in pool.residents},
        "evictions": {model.name: model.evictions for model in pool.residents},
        "failures": log.failures,
        "drift_bytes": {"least": drifts[0], "median": int(median(drifts)), "most": drifts[-1]},
        "drift_every_tenth_bytes": log.drifts[::10],
        "disagreements": len(log.disagreements),
        "unaccounted_most_bytes": log.unaccounted,
        "sets_seen_again": len(log.early.keys() & log.late.keys()),
        "same_set_growth_bytes": log.growth,
        "drift_growth_bytes": log.drift_growth,
    }
    what = f"cycles, {lanes} lanes" if lanes > 1 else "cycles, 1 lane"
    faults = [f"{what}: {failure}" for failure in log.failures]
    faults += [f"{what}: the accounts disagree after {line}" for line in log.disagreements[:5]]
    if log.done < wanted:
        faults.append(f"{what}: {log.done} of {wanted} were run")
    if log.growth is not None and log.growth > FLAT_BYTES:
        faults.append(f"{what}: memory grew by {log.growth / MIB:.1f} MiB with the same models resident")
    if log.drift_growth > FLAT_BYTES:
        faults.append(f"{what}: memory that no model has grew by {log.drift_growth / MIB:.1f} MiB")
    if not any(model.evictions for model in pool.residents):
        faults.append(f"{what}: nothing was evicted")
    return {**found, "faults": faults}
