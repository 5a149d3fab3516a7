"""Served: a model as the worker keeps it: its engine, its intake, its stages and how it is doing."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial

from tensorq.models import ModelInfo, ModelResidency, ModelState
from tensorq.submission import Limits
from tensorq_engines import (
    Buckets,
    Engine,
    EngineOptions,
    LoadPolicy,
    ModelEntry,
    ModelLoadFailed,
    ModelSettings,
    Repository,
    RepositoryError,
    ResidentState,
    check_buckets,
    create_engine,
)
from tensorq_worker.costs import KeptCosts
from tensorq_worker.intake import Intake, RowShapes
from tensorq_worker.pools import Pools
from tensorq_worker.tiles import Run, Stage, Tile

log = logging.getLogger("rq.worker")
FIRST_COOLDOWN_S = 5.0
LAST_COOLDOWN_S = 300.0

STATES = {
    ResidentState.ABSENT: ModelState.IDLE,
    ResidentState.LOADING: ModelState.LOADING,
    ResidentState.RESIDENT: ModelState.READY,
    ResidentState.EVICTING: ModelState.IDLE,
    ResidentState.FAILED: ModelState.FAILED,
}


@dataclass(slots=True)
class Served:
    """One model of this worker.

    Attributes:
        name: the model's name.
        read: reads its folder and settings; raises RepositoryError while they are wrong.
        options: the worker's, for its engine.
        pools: where its engine is loaded and evicted.
        load_policy: the worker's, where model.toml says nothing of it.
        stages: waiting rows, by the shape of a row.
        costs: what its tiles cost.
        warming: it is not ready yet, though it may be loaded.
    """

    name: str
    read: Callable[[], ModelEntry]
    options: EngineOptions
    pools: Pools
    load_policy: LoadPolicy = LoadPolicy.LRU
    stages: dict[RowShapes, Stage] = field(default_factory=dict)
    costs: KeptCosts = field(default_factory=KeptCosts)
    warming: bool = False
    _entry: ModelEntry | None = None
    _engine: Engine | None = None
    _intake: Intake | None = None
    _reason: str = ""
    _retry_at: float = 0.0
    _cooldown_s: float = FIRST_COOLDOWN_S

    @property
    def entry(self) -> ModelEntry:
        """The model's folder and settings, as they were when first read whole.

        Raises:
            ModelLoadFailed: they are wrong.
        """
        if self._entry is None:
            try:
                self._entry = self.read()
            except RepositoryError as exc:
                raise ModelLoadFailed(str(exc)) from exc
        return self._entry

    @property
    def settings(self) -> ModelSettings:
        """The model's settings; the defaults while they cannot be read."""
        return self._entry.settings if self._entry is not None else ModelSettings()

    @property
    def max_delay_ms(self) -> float:
        """How long rows may wait for company."""
        return self.settings.batching.max_delay_ms

    @property
    def engine(self) -> Engine:
        """The engine, described but maybe not loaded.

        Raises:
            ModelLoadFailed: the model cannot be described, or could not a moment ago and is cooling down.
        """
        if self._engine is None:
            left_s = self._retry_at - time.monotonic()
            if self._reason and left_s > 0:
                raise ModelLoadFailed(f"{self._reason} (tried again in {left_s:.0f} s)")
            try:
                engine = create_engine(self.entry, self.options)
                self._intake = Intake(self.name, engine.signature, self._buckets(engine))
                self.pools.add(engine, self.policy, self.settings.residency.pin)
            except ModelLoadFailed as exc:
                self._failed(exc)
                raise
            self._engine, self._reason = engine, ""
            self.costs.open(self.entry, engine)
        return self._engine

    @property
    def policy(self) -> LoadPolicy:
        """When it is loaded: by model.toml, or else by the worker."""
        own = self.settings.residency.load
        return self.load_policy if own is None else LoadPolicy(own)

    @property
    def stays(self) -> bool:
        """Whether it is to be loaded at the start and to stay."""
        return self.policy is LoadPolicy.EAGER or self.settings.residency.pin

    @property
    def resident(self) -> bool:
        """Whether its tiles can run now."""
        return self._engine is not None and self._record_state is ResidentState.RESIDENT

    @property
    def intake(self) -> Intake:
        """What accepts the model's jobs.

        Raises:
            ModelLoadFailed: see `engine`.
        """
        assert self.engine is not None
        assert self._intake is not None
        return self._intake

    def load(self) -> Engine:
        """Loads the model if it is not; waits for what is in its way, so no tile may be running.

        Raises:
            ModelLoadFailed: with the reason, also while a failed load is cooling down.
        """
        engine = self.engine
        refusal = self.refusal()
        if refusal is not None:
            raise refusal
        self.pools[self.name].ensure(self.name)
        self.settle()
        return engine

    def refusal(self) -> ModelLoadFailed | None:
        """Why its jobs fail now: its load failed a moment ago; None where it is worth trying."""
        if self._engine is None or self._record_state is not ResidentState.FAILED:
            return None
        seen = self.pools[self.name].snapshot(self.name)
        if seen.state is not ResidentState.FAILED or seen.retry_in_s <= 0:
            return None
        return ModelLoadFailed(f"{seen.reason} (tried again in {seen.retry_in_s:.0f} s)")

    def settle(self) -> None:
        """Takes note of a load that has ended: a plan that was built only now has costs of its own."""
        if self.resident:
            self.costs.open(self.entry, self.engine)

    def close(self) -> None:
        """Keeps what its tiles cost."""
        self.costs.save()

    def stage_for(self, run: Run) -> Stage:
        """The stage for rows of a job's shape.

        Raises:
            ShapeRefused: no profile of the model admits the shape.
        """
        stage = self.stages.get(run.row_shapes)
        if stage is None:
            inputs = self.intake.signature.inputs
            names = [spec.name for spec in inputs]
            ladder = self.engine.ladder_for(dict(zip(names, run.row_shapes, strict=True)))
            stage = self.stages[run.row_shapes] = Stage(ladder, self.costs.table, run.row_shapes)
        return stage

    def observe(self, tile: Tile, busy_s: float) -> None:
        """Takes note of what a tile took that had the engine for itself; from any thread."""
        self.costs.table.observe(tile.parts[0].run.row_shapes, tile.size, 1000 * busy_s)

    def forget_empty_stages(self) -> None:
        """Drops stages that hold nothing, so that ever new shapes do not add up."""
        if len(self.stages) > 64:
            self.stages = {shape: stage for shape, stage in self.stages.items() if stage.rows}

    @property
    def staged_rows(self) -> int:
        """Rows waiting here, over all shapes."""
        return sum(stage.rows for stage in self.stages.values())

    @property
    def largest(self) -> int:
        """The largest batch size; 1 while the model cannot be described."""
        return self._engine.ladder[-1] if self._engine is not None else 1

    def waiting(self) -> Iterable[Run]:
        """All jobs that have rows here."""
        return [run for stage in self.stages.values() for run in stage.waiting()]

    def info(self) -> ModelInfo:
        """What to publish of the model; without a signature while it cannot be described."""
        queue, engine = self.settings.queue, self._engine
        return ModelInfo(
            name=self.name,
            signature=engine.signature if engine is not None else None,
            ladder=engine.ladder if engine is not None else (),
            engine=engine.kind if engine is not None else self.settings.engine,
            limits=Limits(queue.max_jobs, queue.max_bytes),
            state=self._state,
            reason=self._reason or self._load_reason,
            residency=self._residency(),
        )

    @property
    def _state(self) -> ModelState:
        if self._reason:
            return ModelState.FAILED
        state = STATES[self._record_state]
        return ModelState.LOADING if self.warming and state is ModelState.READY else state

    @property
    def _record_state(self) -> ResidentState:
        if self._engine is None:
            return ResidentState.ABSENT
        return self.pools[self.name][self.name].state

    @property
    def _load_reason(self) -> str:
        return "" if self._engine is None else self.pools[self.name][self.name].reason

    def _residency(self) -> ModelResidency | None:
        if self._engine is None:
            return None
        seen = self.pools[self.name].snapshot(self.name)
        return ModelResidency(
            policy=seen.policy,
            pinned=seen.pinned,
            resident_bytes=seen.memory.total_bytes,
            used_at_s=None if seen.idle_s is None else time.time() - seen.idle_s,
            hits=seen.hits,
            loads=seen.loads,
            evictions=seen.evictions,
            load_ms=seen.load_ms,
        )

    def _buckets(self, engine: Engine) -> tuple[Buckets, ...]:
        buckets = self.settings.bucketed
        problems = check_buckets(buckets, engine.signature, engine.profiles, "model.toml") if buckets else []
        if problems:
            raise ModelLoadFailed(f"model {self.name!r}: " + "\n".join(map(str, problems)))
        return buckets

    def _failed(self, error: Exception) -> None:
        self._reason = str(error)
        self._retry_at = time.monotonic() + self._cooldown_s
        self._cooldown_s = min(2 * self._cooldown_s, LAST_COOLDOWN_S)
        log.error("model %s: %s", self.name, error)


def open_models(
    repository: Repository,
    names: Iterable[str],
    options: EngineOptions,
    pools: Pools,
    load_policy: LoadPolicy = LoadPolicy.LRU,
) -> dict[str, Served]:
    """The models to serve, by name; nothing is loaded, and one that is wrong fails its own jobs alone.

    Args:
        repository: where they are.
        names: which of them.
        options: of their engines.
        pools: where they are loaded.
        load_policy: of models whose model.toml says nothing of it.

    Raises:
        RepositoryError: the repository cannot be read, or lacks a name; the message suggests one.
    """
    known = repository.names
    for name in names:
        if name not in known:
            repository.get(name)
    return {name: Served(name, partial(repository.get, name), options, pools, load_policy) for name in names}
