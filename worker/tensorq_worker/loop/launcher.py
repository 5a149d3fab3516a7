"""Launcher: which tile runs next, and its way onto a lane."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Mapping

from tensorq.errors import TensorqError
from tensorq_engines import EngineFatal, Slot
from tensorq_worker.broker import Broker, Claimed
from tensorq_worker.errors import DeadlineExceeded, WorkerFault
from tensorq_worker.loop.lanes import DrivenLane, Lanes
from tensorq_worker.planner import wait_ms
from tensorq_worker.scheduler import Candidate, Turns, choose
from tensorq_worker.served import Served
from tensorq_worker.tiles import Part, Stage, Tile

log = logging.getLogger("rq.worker")

Place = tuple[Served, Stage]


def refuse_late(job: Claimed) -> None:
    """Returns if the job may still run.

    Raises:
        DeadlineExceeded: its deadline has passed.
    """
    late_ms = time.time() * 1000 - job.deadline_ms
    if job.deadline_ms and late_ms > 0:
        raise DeadlineExceeded(f"the job's deadline passed {late_ms:.0f} ms before it could run")


class Launcher:
    """Takes rows from stages to lanes.

    Tiles of fixed parts (halves of one that failed, suspects) go first. While a suspect runs, nothing else
    does.

    Args:
        broker: notes what is about to run.
        models: where rows wait.
        lanes: where they go.
        fail: fails one job with an error.
    """

    def __init__(
        self,
        broker: Broker,
        models: Mapping[str, Served],
        lanes: Lanes,
        fail: Callable[[Claimed, Exception], None],
    ) -> None:
        self._broker = broker
        self._models = models
        self._lanes = lanes
        self._fail = fail
        self._fixed: deque[Tile] = deque()
        self._alone = False
        self._turns = Turns()

    def launch(self, hurry: bool) -> bool:
        """Launches all that there is room for; returns whether anything was.

        Args:
            hurry: do not wait for company.

        Raises:
            WorkerFault: the process must end.
            redis.exceptions.RedisError: what was about to be launched is kept for the next call.
        """
        launched = False
        while self._launch_one(hurry):
            launched = True
        return launched

    def candidates(self, hurry: bool = False) -> list[Candidate[Place]]:
        """The stages that hold rows."""
        now_ms, here_ms = 1000 * time.time(), 1000 * time.monotonic()
        self._turns.note({name for name, served in self._models.items() if served.staged_rows}, here_ms)
        found = []
        for served in self._models.values():
            for stage in served.stages.values():
                oldest = stage.oldest()
                if oldest is not None:
                    age_ms = max(now_ms - oldest.job.at_ms, oldest.staged_ms())
                    wait = 0.0
                    if not hurry:
                        rate = stage.arrivals.rows_per_ms(here_ms)
                        wait = wait_ms(stage.rows, stage.tiling, age_ms, served.max_delay_ms, rate)
                    size = stage.tiling.next_size(stage.rows)
                    found.append(
                        Candidate(
                            (served, stage),
                            served.name,
                            age_ms,
                            wait,
                            rows=stage.rows,
                            tile_rows=min(size, stage.rows),
                            tile_ms=stage.tiling.tile_ms(size),
                            unserved_ms=self._turns.unserved_ms(served.name, here_ms),
                        )
                    )
        return found

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
        if self._alone:
            if self._lanes.pending:
                return False
            self._alone = False
        if self._fixed:
            return self._launch_fixed()
        chosen = choose(self.candidates(hurry)).tile
        if chosen is None:
            return False
        served, stage = chosen.key
        lane = self._lanes.free(served.engine)
        if lane is None:
            return False
        parts = stage.take(stage.tiling.next_size(stage.rows))
        served.forget_empty_stages()
        if parts:
            self._turns.served(served.name, time.monotonic() * 1000)
            # Rows of dropped jobs counted as waiting: what is left may fit a smaller tile.
            size = stage.tiling.covering_size(sum(part.rows for part in parts))
            self._start(lane, served, Tile(served.name, served.intake.signature, parts, size))
        return True

    def _launch_fixed(self) -> bool:
        tile = self._fixed[0]
        served = self._models[tile.model]
        lane = self._lanes.free(served.engine)
        if lane is None or (tile.alone and self._lanes.pending):
            return False
        self._fixed.popleft()
        self._start(lane, served, tile)
        return True

    def _start(self, lane: DrivenLane, served: Served, tile: Tile) -> None:
        wanted = self._wanted(served, tile)
        if wanted is None:
            return
        try:
            slot = lane.lane.acquire(served.load(), wanted.shapes())
        except EngineFatal as exc:
            raise WorkerFault(str(exc)) from exc
        except TensorqError as exc:
            for part in wanted.parts:
                self._fail(part.run.job, exc)
            return
        if slot is None:
            self._fixed.appendleft(wanted)
            return
        self._submit(lane, slot, wanted)

    def _submit(self, lane: DrivenLane, slot: Slot, tile: Tile) -> None:
        try:
            tile.fill(slot.inputs)
            place, ended = lane.next_place()
            self._broker.mark_running(place, [part.run.job.job_id for part in tile.parts], ended)
        except BaseException:
            slot.release()
            self._fixed.appendleft(tile)
            raise
        self._alone = tile.alone
        try:
            lane.submit(slot, tile)
        except EngineFatal as exc:
            raise WorkerFault(str(exc)) from exc

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
