"""Launcher: which tile runs next, and its way onto a lane."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Mapping

from tensorq.errors import TensorqError
from tensorq_engines import Engine, EngineFatal, Evict, Fits, Later, ModelDoesNotFit, Never, Slot
from tensorq_worker.broker import Broker, Claimed
from tensorq_worker.errors import DeadlineExceeded, WorkerFault
from tensorq_worker.loop.chooser import Chooser
from tensorq_worker.loop.lanes import DrivenLane, Lanes
from tensorq_worker.pools import Pools
from tensorq_worker.served import Served
from tensorq_worker.tiles import Part, Tile

log = logging.getLogger("rq.worker")


def refuse_late(job: Claimed) -> None:
    """Returns if the job may still run.

    Raises:
        DeadlineExceeded: its deadline has passed.
    """
    late_ms = time.time() * 1000 - job.deadline_ms
    if job.deadline_ms and late_ms > 0:
        raise DeadlineExceeded(f"the job's deadline passed {late_ms:.0f} ms before it could run")


class Launcher:
    """Takes rows from stages to lanes, and has models loaded for them.

    Tiles of fixed parts (halves of one that failed, suspects) go first, and others wait until they did. While
    a suspect runs, nothing else does.

    Args:
        broker: notes what is about to run.
        models: where rows wait.
        lanes: where they go.
        pools: who is resident.
        fail: fails one job with an error.

    Attributes:
        again_ms: in how many ms to launch again although nothing has happened; None where that is no use.
    """

    def __init__(
        self,
        broker: Broker,
        models: Mapping[str, Served],
        lanes: Lanes,
        pools: Pools,
        fail: Callable[[Claimed, Exception], None],
    ) -> None:
        self._broker = broker
        self._models = models
        self._lanes = lanes
        self._pools = pools
        self._fail = fail
        self._fixed: deque[Tile] = deque()
        self._alone = False
        self._chooser = Chooser(models, lanes, pools)
        self.again_ms: float | None = None

    def launch(self, hurry: bool) -> bool:
        """Launches all that there is room for; returns whether anything was.

        Args:
            hurry: do not wait for company.

        Raises:
            WorkerFault: the process must end.
            redis.exceptions.RedisError: what was about to be launched is kept for the next call.
        """
        launched = False
        if self._pools.take_changes():
            for served in self._models.values():
                served.settle()
        for served in self._models.values():
            if served.staged_rows and (refusal := served.refusal()) is not None:
                self._refuse(served, refusal)
        try:
            while self._launch_one(hurry):
                launched = True
        except EngineFatal as exc:
            raise WorkerFault(str(exc)) from exc
        return launched

    def suspects(self, model: str) -> int:
        """How many tiles of a model wait to run alone."""
        return sum(tile.alone and tile.model == model for tile in self._fixed)

    def add_fixed(self, served: Served, parts: list[Part], alone: bool = False) -> None:
        """Queues a tile of just these parts; of several where a single job exceeds the largest size."""
        tiling = served.stage_for(parts[0].run).tiling
        largest = tiling.largest
        if len(parts) == 1 and parts[0].rows > largest:
            run, start, stop = parts[0].run, parts[0].start, parts[0].stop
            for first in range(start, stop, largest):
                self.add_fixed(served, [Part(run, first, min(first + largest, stop))], alone)
            return
        size = tiling.covering_size(sum(part.rows for part in parts))
        self._fixed.append(Tile(served.name, served.intake.signature, parts, size, alone))

    def bisect(self, tile: Tile, error: Exception) -> None:
        """Splits a tile that failed until the job that is to blame stands alone, and fails that one.

        Raises:
            WorkerFault: the error is one that the process does not survive.
        """
        if isinstance(error, EngineFatal):
            raise WorkerFault(str(error)) from error
        parts = [part for part in tile.parts if not part.run.dropped]
        if len(tile.parts) == 1 and parts:
            self._fail(parts[0].run.job, error)
        elif parts:
            log.warning("model %s: a tile of %d jobs failed and is split: %s", tile.model, len(parts), error)
            # A part that is left of several runs again: one that was dropped may have been to blame.
            middle = (len(parts) + 1) // 2
            for half in filter(None, (parts[:middle], parts[middle:])):
                self.add_fixed(self._models[tile.model], half, tile.alone)

    def _launch_one(self, hurry: bool) -> bool:
        self.again_ms = None
        if self._alone:
            if self._lanes.pending:
                return False
            self._alone = False
        if self._fixed:
            return self._launch_fixed()
        choice = self._chooser.choose(hurry)
        self.again_ms = choice.again_ms
        requested = choice.load is not None and self._request(self._models[choice.load])
        if choice.tile is None:
            return requested
        served, stage = choice.tile.key
        lane = self._lanes.free(served.engine)
        if lane is None:
            return requested
        parts = stage.take(stage.tiling.next_size(stage.rows))
        served.forget_empty_stages()
        if parts:
            self._chooser.launched(served.name)
            # Rows of dropped jobs counted as waiting: what is left may fit a smaller tile.
            size = stage.tiling.covering_size(sum(part.rows for part in parts))
            self._start(lane, served, Tile(served.name, served.intake.signature, parts, size))
        return True

    def _launch_fixed(self) -> bool:
        tile = self._fixed[0]
        served = self._models[tile.model]
        refusal = served.refusal()
        if refusal is not None:
            self._refuse(served, refusal)
            return True
        lane = self._lanes.free(served.engine)
        if lane is None or (tile.alone and self._lanes.pending):
            return False
        if not served.resident:
            self._request(served)
            return not self._fixed or self._fixed[0] is not tile
        self._fixed.popleft()
        self._start(lane, served, tile)
        return True

    def _request(self, served: Served) -> bool:
        """Has a model loaded; returns whether that began, or its jobs failed because it never can be."""
        pool = self._pools[served.name]
        decision = pool.request(served.name, self._chooser.waiting)
        if isinstance(decision, Never):
            self._refuse(served, ModelDoesNotFit(decision.message))
            return True
        if isinstance(decision, Later) and decision.until_s is not None:
            self.again_ms = max(0.0, 1000 * (decision.until_s - time.monotonic()))
        return isinstance(decision, Fits | Evict)

    def _refuse(self, served: Served, error: Exception) -> None:
        """Fails all jobs of a model that wait here."""
        fixed, self._fixed = self._fixed, deque()
        for tile in fixed:
            if tile.model != served.name:
                self._fixed.append(tile)
                continue
            for part in tile.parts:
                if not part.run.dropped:
                    self._fail(part.run.job, error)
        for run in served.waiting():
            self._fail(run.job, error)

    def _start(self, lane: DrivenLane, served: Served, tile: Tile) -> None:
        wanted = self._wanted(served, tile)
        if wanted is None:
            return
        engine = self._pools[served.name].use(served.name)
        slot = None if engine is None else self._acquire(lane, served, engine, wanted)
        if slot is None:
            if any(not part.run.dropped for part in wanted.parts):
                self._fixed.appendleft(wanted)
            return
        self._submit(lane, slot, wanted)

    def _acquire(self, lane: DrivenLane, served: Served, engine: Engine, tile: Tile) -> Slot | None:
        """Takes a slot; None where none is free, or the jobs failed because the engine takes no such tile."""
        slot = None
        try:
            slot = lane.lane.acquire(engine, tile.shapes())
        except EngineFatal:
            raise
        except TensorqError as exc:
            for part in tile.parts:
                self._fail(part.run.job, exc)
        finally:
            if slot is None:
                self._pools[served.name].done(served.name)
        return slot

    def _submit(self, lane: DrivenLane, slot: Slot, tile: Tile) -> None:
        try:
            tile.fill(slot.inputs)
            place, ended = lane.next_place()
            self._broker.mark_running(place, [part.run.job.job_id for part in tile.parts], ended)
        except BaseException:
            slot.release()
            self._pools[tile.model].done(tile.model)
            self._fixed.appendleft(tile)
            raise
        self._alone = tile.alone
        lane.submit(slot, tile)

    def _wanted(self, served: Served, tile: Tile) -> Tile | None:
        """The tile without jobs that were dropped or whose deadline passed; None where nothing is left."""
        parts = []
        for part in tile.parts:
            if part.run.dropped:
                continue
            try:
                refuse_late(part.run.job)
                parts.append(part)
            except DeadlineExceeded as exc:
                self._fail(part.run.job, exc)
        if len(parts) == len(tile.parts):
            return tile
        if not parts:
            return None
        tiling = served.stage_for(parts[0].run).tiling
        size = tiling.covering_size(sum(part.rows for part in parts))
        return Tile(tile.model, tile.signature, parts, size, tile.alone)
