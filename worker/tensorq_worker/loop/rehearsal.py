"""Rehearsal: tiles of nobody's jobs that go the whole way, from intake to finish."""

from __future__ import annotations

import time
from collections.abc import Mapping
from uuid import uuid4

import numpy as np

from tensorq import wire
from tensorq_engines import EngineError, ShapeRefused, known_row_shapes
from tensorq_worker.broker import Broker, Claimed
from tensorq_worker.loop.lanes import DrivenLane, Lanes
from tensorq_worker.loop.stop import Stop
from tensorq_worker.pools import Pools
from tensorq_worker.served import Served
from tensorq_worker.tiles import Part, Tile

LOOK_AGAIN_S = 0.005


class Rehearsal:
    """Runs every size of a model's ladder, at the shapes that are known beforehand, on every lane.

    Warming an engine leaves the worker around it cold: fetching, decoding, staging, collectors, packing and
    the script that stores results. Its jobs are not in Redis, so that script finds them not ours and stores
    nothing.
    """

    def __init__(self, broker: Broker, lanes: Lanes, pools: Pools, stop: Stop) -> None:
        self._broker = broker
        self._lanes = lanes
        self._pools = pools
        self._stop = stop

    def run(self, served: Served) -> int:
        """Returns how many tiles ran; ends early when the worker is told to stop.

        Raises:
            EngineError: a lane takes no such tile.
        """
        engine, tiles = served.engine, 0
        for row_shapes in known_row_shapes(engine):
            try:
                sizes = engine.ladder_for(row_shapes)
            except ShapeRefused:
                continue
            for rows in sizes:
                for lane in self._lanes.of(engine.kind):
                    if self._stop.requested:
                        return tiles
                    tiles += self._run(served, lane, rows, row_shapes)
        return tiles

    def _run(
        self, served: Served, lane: DrivenLane, rows: int, row_shapes: Mapping[str, tuple[int, ...]]
    ) -> int:
        signature = served.intake.signature
        lead = (rows,) if signature.batch_axis == 0 else ()
        tensors = {
            spec.name: np.zeros((*lead, *row_shapes[spec.name]), spec.dtype) for spec in signature.inputs
        }
        job = _job(served.name)
        job.payload = self._broker.rehearse(job.job_id, wire.pack(tensors))
        run = served.intake.accept(job)
        tile = Tile(served.name, signature, [Part(run, 0, run.rows)], rows, rehearsal=True)
        engine = self._pools[served.name].use(served.name)
        if engine is None:
            return 0
        try:
            slot = lane.lane.acquire(engine, tile.shapes())
            if slot is None:
                raise EngineError(f"model {served.name!r}: no slot was free to warm it")
        except BaseException:
            self._pools[served.name].done(served.name)
            raise
        tile.fill(slot.inputs)
        lane.submit(slot, tile)
        while lane.collector.pending and not self._stop.forced:
            time.sleep(LOOK_AGAIN_S)
        return 1


def _job(model: str) -> Claimed:
    return Claimed(
        job_id=f"rehearsal-{uuid4()}",
        queue=model,
        token=uuid4().hex,
        model=model,
        payload=None,
        size_bytes=0,
        client="",
        at_ms=int(1000 * time.time()),
        timeout_s=0,
        deadline_ms=0,
        result_ttl_s=None,
        alone=False,
        crashes=0,
        unusual=False,
    )
