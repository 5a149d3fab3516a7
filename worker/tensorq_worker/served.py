"""Served: a model as the worker keeps it: its engine, its intake, its stages and how it is doing."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial

from tensorq.models import ModelInfo, ModelState
from tensorq.submission import Limits
from tensorq_engines import (
    Buckets,
    Engine,
    EngineOptions,
    ModelEntry,
    ModelLoadFailed,
    ModelSettings,
    Repository,
    RepositoryError,
    check_buckets,
    create_engine,
)
from tensorq_worker.costs import KeptCosts
from tensorq_worker.intake import Intake, RowShapes
from tensorq_worker.tiles import Run, Stage, Tile

log = logging.getLogger("rq.worker")
FIRST_COOLDOWN_S = 5.0
LAST_COOLDOWN_S = 300.0


@dataclass(slots=True)
class Served:
    """One model of this worker.

    Attributes:
        name: the model's name.
        read: reads its folder and settings; raises RepositoryError while they are wrong.
        stages: waiting rows, by the shape of a row.
        state: as published.
        reason: why it failed.
        costs: what its tiles cost.
    """

    name: str
    read: Callable[[], ModelEntry]
    options: EngineOptions
    stages: dict[RowShapes, Stage] = field(default_factory=dict)
    state: ModelState = ModelState.IDLE
    reason: str = ""
    costs: KeptCosts = field(default_factory=KeptCosts)
    _entry: ModelEntry | None = None
    _engine: Engine | None = None
    _intake: Intake | None = None
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
            ModelLoadFailed: the model cannot be described, or failed a moment ago and is cooling down.
        """
        if self._engine is None:
            self._refuse_while_cooling()
            try:
                engine = create_engine(self.entry, self.options)
                self._intake = Intake(self.name, engine.signature, self._buckets(engine))
                self._engine = engine
                self.costs.open(self.entry, engine)
            except ModelLoadFailed as exc:
                self._failed(exc)
                raise
        return self._engine

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
        """Loads the model if it is not; a failed load is not tried again before it has cooled down.

        Raises:
            ModelLoadFailed: with the reason, also while cooling down.
        """
        engine = self.engine
        if engine.loaded:
            return engine
        self._refuse_while_cooling()
        started = time.perf_counter()
        try:
            engine.load()
        except ModelLoadFailed as exc:
            self._failed(exc)
            raise
        # A plan that was built only now has costs of its own.
        self.costs.open(self.entry, engine)
        self.state, self.reason, self._cooldown_s = ModelState.READY, "", FIRST_COOLDOWN_S
        log.info("model %s: loaded in %.0f ms", self.name, 1000 * (time.perf_counter() - started))
        return engine

    def close(self) -> None:
        """Unloads the model, and keeps what its tiles cost."""
        self.costs.save()
        if self._engine is not None:
            self._engine.close()

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
            state=self.state,
            reason=self.reason,
        )

    def _buckets(self, engine: Engine) -> tuple[Buckets, ...]:
        buckets = self.settings.bucketed
        problems = check_buckets(buckets, engine.signature, engine.profiles, "model.toml") if buckets else []
        if problems:
            raise ModelLoadFailed(f"model {self.name!r}: " + "\n".join(map(str, problems)))
        return buckets

    def _failed(self, error: Exception) -> None:
        self.state, self.reason = ModelState.FAILED, str(error)
        self._retry_at = time.monotonic() + self._cooldown_s
        self._cooldown_s = min(2 * self._cooldown_s, LAST_COOLDOWN_S)
        log.error("model %s: %s", self.name, error)

    def _refuse_while_cooling(self) -> None:
        left_s = self._retry_at - time.monotonic()
        if self.state is ModelState.FAILED and left_s > 0:
            raise ModelLoadFailed(f"{self.reason} (tried again in {left_s:.0f} s)")


def open_models(repository: Repository, names: Iterable[str], options: EngineOptions) -> dict[str, Served]:
    """The models to serve, by name; nothing is loaded, and one that is wrong fails its own jobs alone.

    Raises:
        RepositoryError: the repository cannot be read, or lacks a name; the message suggests one.
    """
    known = repository.names
    for name in names:
        if name not in known:
            repository.get(name)
    return {name: Served(name, partial(repository.get, name), options) for name in names}
