"""Collector: waits for a lane's tiles, packs results, and finishes jobs, on a thread of its own."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Mapping

import numpy as np
from redis.exceptions import RedisError

from tensorq import wire
from tensorq_engines import EngineError
from tensorq_worker.broker import Broker, Finished, Outcome
from tensorq_worker.errors import DeadlineExceeded, NotFinite
from tensorq_worker.leases import Leases
from tensorq_worker.loop.backoff import Backoff, wrong_type
from tensorq_worker.loop.launched import Event, JobEnded, Launched, TileEnded
from tensorq_worker.tiles import Run, Tile

log = logging.getLogger("rq.worker")


class Collector:
    """Takes tiles in the order they were submitted to one lane.

    The slot is released as soon as the results are packed, so storing them overlaps with the next tiles.

    Args:
        broker: stores results.
        leases: where finished jobs are taken out.
        tell: hands an event to the loop; called from this thread.
        released: called, from this thread, when a slot became free or a tile is dealt with.
        observe: takes, from this thread, the busy seconds of a tile that ran behind another, and while no
            other lane did.
        left: takes, from this thread, a tile that has left its lane: its model may go.
        finite: tells of a model whether its results must be finite numbers.
    """

    def __init__(
        self,
        broker: Broker,
        leases: Leases,
        tell: Callable[[Event], None],
        released: Callable[[], None],
        observe: Callable[[Tile, float], None],
        left: Callable[[Tile], None],
        finite: Callable[[str], bool],
    ) -> None:
        self._broker = broker
        self._leases = leases
        self._tell = tell
        self._released = released
        self._observe = observe
        self._left = left
        self._finite = finite
        self._launched: queue.SimpleQueue[Launched | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="tensorq-collector", daemon=True)
        self._stopping = threading.Event()
        self.in_slots = 0
        self.pending = 0
        # The tile that is waited for, and since when (`time.perf_counter`).
        self._waiting: tuple[Launched, float] | None = None
        self._lock = threading.Lock()

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def put(self, launched: Launched) -> None:
        """Takes over a submitted tile."""
        with self._lock:
            self.in_slots += 1
            self.pending += 1
        self._launched.put(launched)

    def overdue_s(self) -> float:
        """Seconds by which the wait for a tile exceeds its shortest timeout; 0 or less where it does not."""
        waiting = self._waiting
        if waiting is None or waiting[0].timeout_s is None:
            return 0.0
        return time.perf_counter() - waiting[1] - waiting[0].timeout_s

    def close(self, timeout_s: float | None = None) -> bool:
        """Deals with the tiles still pending, for up to ``timeout_s``, and ends the thread.

        Returns:
            Whether everything was dealt with.
        """
        self._launched.put(None)
        if timeout_s is not None and not self._thread.is_alive():
            return True
        self._thread.join(timeout_s)
        self._stopping.set()
        return not self._thread.is_alive()

    def _run(self) -> None:
        while (launched := self._launched.get()) is not None:
            try:
                self._collect(launched)
            except Exception as exc:
                log.exception("collecting a tile of model %s", launched.tile.model)
                self._tell(TileEnded(launched.tile, exc))
            finally:
                with self._lock:
                    self.pending -= 1
                self._released()

    def _collect(self, launched: Launched) -> None:
        tile = launched.tile
        try:
            outputs, busy_s, waited_s = self._wait(launched)
            if launched.alone is not None and launched.alone():
                self._observe(tile, busy_s)
            for part in tile.parts:
                if 0 < part.run.job.timeout_s < waited_s:
                    # Kept there: the job's last rows may come in time, and before the loop hears of these.
                    part.run.late_s = waited_s
            complete = [(run, wire.pack(mine), mine) for run, mine in tile.collect(outputs)]
            for run in {part.run for part in tile.parts} - {run for run, *_ in complete}:
                if not run.dropped and (run.stopped or run.late_s):
                    # Its other rows are not worth a tile.
                    self._tell(JobEnded(run.job, error=self._late(run)))
            hot: list[tuple[Run, bytes]] = []
            must_be_finite = self._finite(tile.model) and not tile.rehearsal
            for run, packed, mine in complete:
                if run.stopped or run.late_s:
                    self._tell(JobEnded(run.job, error=self._late(run)))
                elif must_be_finite and (odd := _not_finite(mine)):
                    self._tell(JobEnded(run.job, error=odd))
                elif run.job.unusual:
                    self._tell(JobEnded(run.job, {name: a.copy() for name, a in mine.items()}, packed))
                else:
                    hot.append((run, packed))
        except EngineError as exc:
            if tile.rehearsal:
                log.error("model %s: a tile of zeros failed: %s", tile.model, exc)
            else:
                self._tell(TileEnded(tile, exc))
            return
        finally:
            self._free(launched)
        self._finish(launched, hot, busy_s)

    def _wait(self, launched: Launched) -> tuple[Mapping[str, np.ndarray], float, float]:
        """Returns the outputs, how long the engine was busy, and for how long it was waited for, in seconds.

        Timeouts go by the wait: a Redis that stalls the storing of one tile must not make the next one late.
        """
        since = time.perf_counter()
        self._waiting = launched, since
        try:
            outputs = launched.slot.wait()
        finally:
            self._waiting = None
        return outputs, launched.slot.busy_s, time.perf_counter() - since

    def _late(self, run: Run) -> Exception | None:
        if run.stopped:
            return None
        return DeadlineExceeded(
            f"the tile ran for {run.late_s:.1f} s, the job's timeout is {run.job.timeout_s} s; "
            "submit it with a longer timeout or fewer rows"
        )

    def _free(self, launched: Launched) -> None:
        launched.slot.release()
        self._left(launched.tile)
        with self._lock:
            self.in_slots -= 1
        self._released()

    def _finish(self, launched: Launched, hot: list[tuple[Run, bytes]], busy_s: float) -> None:
        tile, backoff = launched.tile, Backoff()
        counted = 0 if tile.rehearsal else 1
        done = [Finished(run.job, packed, run.started_s) for run, packed in hot]
        while True:
            try:
                outcomes = self._broker.finish(
                    tile.model,
                    done,
                    tiles=counted,
                    rows=counted * tile.rows,
                    padding=counted * tile.padding,
                    busy_s=counted * busy_s,
                )
                break
            except RedisError as exc:
                if tile.rehearsal:
                    # Nobody waits for its result, and the start of the worker waits for its end.
                    log.error("model %s: a tile of zeros was not stored: Redis: %s", tile.model, exc)
                    return
                if wrong_type(exc):
                    # In the way of one job, which of them only the slow path finds out.
                    for run, packed in hot:
                        self._tell(JobEnded(run.job, wire.unpack(packed), packed))
                    return
                # The results are in memory and the leases are fenced: trying again is right however often.
                if self._stopping.is_set() or not backoff.wait(self._stopping, exc, "storing results"):
                    return
        if tile.rehearsal:
            return
        for (run, packed), outcome in zip(hot, outcomes, strict=True):
            if outcome is Outcome.DEPENDENTS:
                self._tell(JobEnded(run.job, wire.unpack(packed), packed))
            elif outcome is Outcome.LOST:
                log.warning("job %s is not ours any more: its result was dropped", run.job.job_id)
        ended = [r.job for (r, _), o in zip(hot, outcomes, strict=True) if o is not Outcome.DEPENDENTS]
        self._leases.end(ended)


def _not_finite(outputs: Mapping[str, np.ndarray]) -> NotFinite | None:
    """The error for a result with NaN or infinity in it; None where all numbers are finite."""
    for name, array in outputs.items():
        count = int(np.count_nonzero(~np.isfinite(array)))
        if count:
            return NotFinite(
                f"output {name!r}: {count} of {array.size} numbers are NaN or infinite; look at the job's "
                "input, or set finite = false in the model's [outputs]"
            )
    return None
