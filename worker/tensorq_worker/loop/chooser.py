"""Chooser: puts the state of stages, lanes and residency before the scheduler."""

from __future__ import annotations

import time
from collections.abc import Mapping

from tensorq_engines import ResidentState
from tensorq_worker.loop.lanes import Lanes
from tensorq_worker.planner import wait_ms
from tensorq_worker.pools import Pools
from tensorq_worker.scheduler import Candidate, Choice, Turns, choose
from tensorq_worker.served import Served
from tensorq_worker.tiles import Stage

Place = tuple[Served, Stage]

FIRST_LOAD_MS = 100.0
"""What a model's first load is taken to take."""


class Chooser:
    """Asks for the next tile and the next load.

    Args:
        models: where rows wait.
        lanes: where they go.
        pools: who is resident.
    """

    def __init__(self, models: Mapping[str, Served], lanes: Lanes, pools: Pools) -> None:
        self._models = models
        self._lanes = lanes
        self._pools = pools
        self._turns = Turns()

    def choose(self, hurry: bool) -> Choice[Place]:
        """Returns what to do now.

        Args:
            hurry: do not wait for company.
        """
        candidates = self._candidates(hurry)
        if all(one.resident for one in candidates):
            return choose(candidates)
        waiting = {one.model for one in candidates}
        return choose(
            candidates,
            lambda name: self._pools[name].room_for(name, waiting),
            now_s=time.monotonic(),
            loading=self._pools.loading,
            lately=self._pools.lately(),
        )

    @property
    def waiting(self) -> set[str]:
        """The models that have rows waiting."""
        return {name for name, served in self._models.items() if served.staged_rows}

    def launched(self, model: str) -> None:
        """Takes note that rows of a model's queue went to a lane."""
        self._turns.served(model, 1000 * time.monotonic())

    def _candidates(self, hurry: bool) -> list[Candidate[Place]]:
        now_ms, here_ms = 1000 * time.time(), 1000 * time.monotonic()
        self._turns.note(self.waiting, here_ms)
        found: list[Candidate[Place]] = []
        for served in self._models.values():
            for stage in served.stages.values():
                oldest = stage.oldest()
                if oldest is None:
                    continue
                age_ms = max(now_ms - oldest.job.at_ms, oldest.staged_ms())
                wait = 0.0
                if not hurry:
                    rate = stage.arrivals.rows_per_ms(here_ms)
                    wait = wait_ms(stage.rows, stage.tiling, age_ms, served.max_delay_ms, rate)
                found.append(self._candidate(served, stage, age_ms, wait, here_ms))
        return found

    def _candidate(
        self, served: Served, stage: Stage, age_ms: float, wait: float, here_ms: float
    ) -> Candidate[Place]:
        pool, size = self._pools[served.name], stage.tiling.next_size(stage.rows)
        record = pool[served.name]
        return Candidate(
            (served, stage),
            served.name,
            age_ms,
            wait,
            rows=stage.rows,
            tile_rows=min(size, stage.rows),
            tile_ms=stage.tiling.tile_ms(size),
            unserved_ms=self._turns.unserved_ms(served.name, here_ms),
            resident=record.state is ResidentState.RESIDENT,
            load_ms=1000 * record.load_s or FIRST_LOAD_MS,
            stay_ms=1000 * pool.stay_s(served.name),
            lane_free=self._lanes.free(served.engine) is not None,
        )
