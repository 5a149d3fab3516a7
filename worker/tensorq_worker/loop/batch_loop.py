"""The batch loop: claims, admits, launches and settles, on the main thread.

Collectors, the pulse and the waker run beside it and only leave events for it; every decision is made here.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from redis.exceptions import ResponseError

from tensorq.errors import TensorqError
from tensorq.names import parse_queue
from tensorq_worker.broker import Broker, Claimed, Want
from tensorq_worker.errors import FunctionRefused, PoisonJob
from tensorq_worker.leases import Leases
from tensorq_worker.loop.backoff import wrong_type
from tensorq_worker.loop.lanes import Lanes
from tensorq_worker.loop.launched import Event, JobEnded, TileEnded
from tensorq_worker.loop.launcher import Launcher, refuse_late
from tensorq_worker.loop.stop import Stop
from tensorq_worker.pools import Pools
from tensorq_worker.redisrq import SlowPath
from tensorq_worker.served import Served
from tensorq_worker.tiles import Part

log = logging.getLogger("rq.worker")

IDLE_TICK_MS = 1000.0


class BatchLoop:
    """One worker's work.

    Args:
        broker: the worker's traffic about jobs.
        models: what it serves, by name.
        lanes: where tiles run.
        pools: which models are loaded.
        slow: ends what RQ's handlers must end.
        leases: the jobs held.
        stop: what signal handlers ask.
        prefetch_tiles: largest tiles' worth of rows to stage ahead, a model.
        allow_functions: run function jobs.
        max_jobs: claim no more than this many jobs in all; None for any number.
    """

    def __init__(
        self,
        broker: Broker,
        models: Mapping[str, Served],
        lanes: Lanes,
        pools: Pools,
        slow: SlowPath,
        leases: Leases,
        stop: Stop,
        *,
        prefetch_tiles: int,
        allow_functions: bool,
        max_jobs: int | None = None,
    ) -> None:
        self._broker = broker
        self._models = models
        self._lanes = lanes
        self._slow = slow
        self._leases = leases
        self._stop = stop
        self._prefetch_tiles = prefetch_tiles
        self._allow_functions = allow_functions
        self._max_jobs = max_jobs
        self._launcher = Launcher(broker, models, lanes, pools, self._fail)
        self._events: deque[Event] = deque()
        # Acts that need several round trips, in order; one that Redis interrupts is fenced and run again.
        self._errands: deque[tuple[Claimed, Callable[[], None]]] = deque()
        self.claimed_jobs = 0

    def tell(self, event: Event) -> None:
        """Takes an event from another thread."""
        self._events.append(event)
        self._stop.wake.set()

    @property
    def busy(self) -> bool:
        """Whether anything that was claimed, or may have been, is not ended yet."""
        return self.holding or self._broker.claim_pending

    @property
    def holding(self) -> bool:
        """Whether anything that was claimed is here and not ended yet."""
        return bool(self._leases or self._errands or self._events or self._lanes.pending)

    @property
    def exhausted(self) -> bool:
        """Whether as many jobs were claimed as were asked for."""
        return self._max_jobs is not None and self.claimed_jobs >= self._max_jobs

    def step(self, claiming: bool) -> bool:
        """Does what can be done now, and waits for nothing but Redis.

        Args:
            claiming: take new jobs.

        Returns:
            Whether anything was done.

        Raises:
            WorkerFault: the process must end.
            redis.exceptions.RedisError: call again; nothing is forgotten.
        """
        hurry = not claiming
        worked = self._settle()
        # Before the errands, which maxmemory may hold up: what ends here frees memory.
        worked |= self._launcher.launch(hurry)
        worked |= self._run_errands()
        if self._claim(claiming):
            worked = True
            worked |= self._launcher.launch(hurry)
        return worked

    def until_next_ms(self) -> float:
        """How long `step` has nothing to do unless woken, in ms."""
        again_ms = self._launcher.again_ms
        return IDLE_TICK_MS if again_ms is None else min(again_ms, IDLE_TICK_MS)

    def _claim(self, claiming: bool) -> bool:
        worked = False
        for wants in self._wants(claiming):
            claimed = self._broker.claim(wants)
            self._leases.add(claimed)
            self.claimed_jobs += len(claimed)
            for job in claimed:
                try:
                    self._admit(job)
                except Exception as exc:
                    if not isinstance(exc, TensorqError):
                        log.exception("admitting job %s", job.job_id)
                    self._fail(job, exc)
            worked |= bool(claimed)
        return worked

    def _wants(self, claiming: bool) -> Iterator[list[Want]]:
        """What to claim: in one call, unless models share a bound, which idle ones must not use up."""
        wants = []
        for served in self._models.values() if claiming else ():
            tiles = self._prefetch_tiles - self._launcher.suspects(served.name)
            rows = tiles * served.largest - served.staged_rows
            # Half a tile at least, or a full stage would cost a claim for each job that leaves it.
            if rows >= max(1, served.largest // 2):
                wants.append(Want(served.name, rows, rows))
        if self._max_jobs is None:
            if wants or self._broker.claim_pending:
                yield wants
            return
        if self._broker.claim_pending:
            yield []
        for want in wants:
            left = self._max_jobs - self.claimed_jobs
            if left > 0:
                yield [replace(want, max_jobs=min(want.max_jobs, left))]

    def _admit(self, job: Claimed) -> None:
        if not job.model:
            self._admit_function(job)
            return
        if job.crashes:
            raise PoisonJob(
                f"the worker process died {job.crashes} times while it ran this job alone; "
                "look at its input and at the worker's log, then requeue it to try afresh"
            )
        refuse_late(job)
        served = self._models[parse_queue(job.queue)[0]]
        run = served.intake.accept(job)
        stage = served.stage_for(run)
        self._leases.attach(run)
        if job.alone:
            self._launcher.add_fixed(served, [Part(run, 0, run.rows)], alone=True)
        else:
            stage.add(run)

    def _admit_function(self, job: Claimed) -> None:
        if not self._allow_functions:
            raise FunctionRefused(
                "this queue's worker runs tensorq jobs only, and this is a function call; submit tensors "
                "with tensorq.Client, or start the worker with --allow-functions"
            )
        self._errands.append((job, lambda: self._slow.call(job)))

    def _fail(self, job: Claimed, error: Exception) -> None:
        run = self._leases.run_of(job)
        if run is not None:
            if run.dropped:
                return
            run.dropped = True
            if run.stopped:
                self._errands.append((job, lambda: self._slow.stop(job)))
                return
        self._errands.append((job, lambda: self._slow.fail(job, error)))

    def _run_errands(self) -> bool:
        worked = bool(self._errands)
        while self._errands:
            job, act = self._errands[0]
            try:
                act()
            except ResponseError as exc:
                if not wrong_type(exc):
                    raise
                # Trying again cannot help; once the lease has lapsed somebody may have removed that key.
                log.exception("job %s: a key of another type is in its way; it is left as it is", job.job_id)
                self._leases.end([job])
            self._errands.popleft()
        return worked

    def _settle(self) -> bool:
        worked = bool(self._events)
        while self._stop.jobs:
            self._stop_job(self._stop.jobs.popleft())
        while self._events:
            event = self._events.popleft()
            if isinstance(event, TileEnded):
                self._launcher.bisect(event.tile, event.error)
            else:
                self._end_job(event)
        return worked

    def _end_job(self, event: JobEnded) -> None:
        job, outputs, run = event.job, event.outputs, self._leases.run_of(event.job)
        if run is not None and run.stopped:
            if run.dropped:
                return
            run.dropped = True
            self._errands.append((job, lambda: self._slow.stop(job)))
        elif event.error is not None:
            self._fail(job, event.error)
        elif outputs is not None:
            self._errands.append((job, lambda: self._slow.succeed(job, outputs, event.result)))

    def _stop_job(self, job_id: str) -> None:
        run, job = self._leases.run(job_id), self._leases.get(job_id)
        if run is None or job is None:
            log.warning("Not working on job %s, stop ignored.", job_id)
            return
        run.stopped = True
        if not run.started_s:
            # Its tile is not launched: nothing will report its end.
            run.dropped = True
            self._errands.append((job, lambda: self._slow.stop(job)))
