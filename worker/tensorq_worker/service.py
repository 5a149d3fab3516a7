"""Service: one worker's parts, put together, started and closed in order."""

from __future__ import annotations

import gc
import logging
import os
from collections.abc import Sequence

from redis import Redis
from redis.exceptions import RedisError
from rq import worker_registration
from rq.worker.base import BaseWorker

from tensorq import keys
from tensorq.models import publish
from tensorq_engines import EngineError, EngineOptions, LoadPolicy, Repository
from tensorq_worker.broker import Broker
from tensorq_worker.broker.broker import RUNNING_TTL_S
from tensorq_worker.config import WorkerConfig
from tensorq_worker.health import Health
from tensorq_worker.leases import Leases
from tensorq_worker.loop import BatchLoop, Stop
from tensorq_worker.loop.collector import Collector
from tensorq_worker.loop.lanes import Lanes
from tensorq_worker.pools import MIB, Pools
from tensorq_worker.pulse import Pulse, Task
from tensorq_worker.redisrq import SlowPath
from tensorq_worker.served import open_models
from tensorq_worker.startup import Startup
from tensorq_worker.tiles import Tile
from tensorq_worker.waker import Waker

log = logging.getLogger("rq.worker")

PUBLISH_EVERY_S = 20.0
PUBLISH_TTL_S = 60
SWEEP_EVERY_S = 300.0
KEEP_COSTS_EVERY_S = 60.0
CHECK_MEMORY_EVERY_S = 60.0
OVERDUE_S = 60.0


class Service:
    """What a worker runs on.

    Args:
        worker: the RQ worker.
        redis: a connection that yields bytes.
        config: settings.
        models: names of the models to serve.
        stop: what signal handlers ask.
        max_jobs: claim no more than this many; None for any number.

    Raises:
        RepositoryError: the repository cannot be read, or lacks one of the models.
        ConfigError: the health file cannot be written.
    """

    def __init__(
        self,
        worker: BaseWorker,
        redis: Redis,
        config: WorkerConfig,
        models: Sequence[str],
        stop: Stop,
        max_jobs: int | None,
    ) -> None:
        self._worker = worker
        self._redis = redis
        self._config = config
        self._stop = stop
        self._pools = Pools(
            config.lanes,
            config.slots,
            budget_bytes=None if config.budget_mib is None else config.budget_mib * MIB,
            pinned_bytes=None if config.pinned_mib is None else config.pinned_mib * MIB,
            changed=stop.wake.set,
        )
        self.models = open_models(
            Repository(config.models),
            models,
            EngineOptions(intra_op_threads=config.threads or None),
            self._pools,
            LoadPolicy.LRU if config.load == "auto" else LoadPolicy(config.load),
        )
        self._leases = Leases()
        self._health = Health(worker.name, config.health_file, self._leases.__len__)
        self._broker = Broker(
            redis,
            worker.name,
            lease_s=config.lease_s,
            aging_ms=int(config.aging_s * 1000),
            max_bytes=config.max_claim_mib * 1024 * 1024,
            result_ttl_s=worker.default_result_ttl,
        )
        self._lanes = Lanes(config.lanes, config.slots, self._new_collector, self._pools.attach)
        self.loop = BatchLoop(
            self._broker,
            self.models,
            self._lanes,
            self._pools,
            SlowPath(worker, redis, self._leases, worker.default_result_ttl),
            self._leases,
            stop,
            prefetch_tiles=config.prefetch_tiles,
            allow_functions=config.allow_functions,
            max_jobs=max_jobs,
        )
        self._pulse = Pulse(
            [
                # In this order: a reap gives back what had lapsed by the last beat.
                Task("beat", config.beat_s, self._beat),
                Task("reaping", config.lease_s / 3, self._reap),
                Task("publishing", PUBLISH_EVERY_S, self._publish),
                Task("keeping costs", KEEP_COSTS_EVERY_S, self._keep_costs),
                Task("checking memory", CHECK_MEMORY_EVERY_S, self._check_memory),
                Task("sweeping", SWEEP_EVERY_S, self._sweep),
            ]
        )
        # On a thread of its own: a Redis that does not answer holds the other one up for as long.
        self._watch = Pulse(
            [Task("health", self._health.every_s, self._tell), Task("watchdog", 1.0, self._end_overdue)],
            "tensorq-watch",
        )
        self._waker = Waker(redis, stop.wake)

    def start(self) -> None:
        """Starts the threads, and loads and warms the models where the settings say so.

        Raises:
            EagerLoadFailed: a model that is to be there from the start cannot be loaded.
            WorkerFault: the process must end.
        """
        self._watch.start()
        self._pulse.start()
        self._waker.start()
        startup = Startup(self._broker, self.models, self._pools, self._lanes, self._stop)
        startup.run(preload=self._config.load == "auto")
        try:
            # For the main thread, the pulse, and each lane's collector.
            self._broker.open_connections(2 + len(self._lanes))
        except RedisError as exc:
            log.error("Redis: %s; connections are opened when they are needed", exc)
        # What there is by now stays: going through it, at some job or other, would take milliseconds.
        gc.collect()
        gc.freeze()

    def announce(self) -> None:
        """Says that the worker is ready: once the loop has gone round, so that a job finds it waiting."""
        self._publish()
        self._health.ready()
        log.info("Worker %s: ready, serving %s", self._worker.name, ", ".join(self.models))

    def hand_back(self, keep_running: bool = False) -> int:
        """Gives back what is not finished; returns how many jobs.

        Args:
            keep_running: leave the jobs of running tiles leased, so that the reaper finds the suspects.
        """
        held = self._leases.all()
        if keep_running:
            held = [job for job in held if (run := self._leases.run(job.job_id)) is None or not run.started_s]
        if not held:
            return 0
        try:
            count = self._broker.give_back(held)
        except RedisError as exc:
            log.error("could not hand back %d jobs, their leases will lapse: %s", len(held), exc)
            return 0
        self._leases.end(held)
        return count

    def close(self) -> bool:
        """Ends the threads, and unloads the models.

        Returns:
            False where a tile did not end within ten seconds, or a model is being loaded, which may build a
            plan for minutes: that goes on, and nothing is unloaded.
        """
        ended = self._lanes.close(timeout_s=0.1 if self._stop.forced else 10.0) and not self._pools.loading
        self._pulse.close()
        self._watch.close()
        self._waker.close()
        if ended:
            for served in self.models.values():
                served.close()
            self._pools.close()
        self._health.close()
        return ended

    def _new_collector(self) -> Collector:
        def finite(model: str) -> bool:
            return self.models[model].settings.outputs.finite

        wake, tell = self._stop.wake.set, self.loop.tell
        return Collector(self._broker, self._leases, tell, wake, self._observe, self._left, finite)

    def _beat(self) -> None:
        worker = self._worker
        held = self._leases.all()
        alive, lost = self._broker.beat(held, worker.worker_ttl + 60)
        self._redis.expire(keys.running(worker.name), RUNNING_TTL_S)
        if lost:
            log.warning("%d jobs are not ours any more: cancelled, deleted, or lapsed", len(lost))
            ids = set(lost)
            gone = [job for job in held if job.job_id in ids]
            self._leases.drop(gone)
            self._broker.drop_inputs(gone)
        if not alive:
            self._register_again()

    def _register_again(self) -> None:
        """Writes the worker's own record and its models' anew, after Redis lost them."""
        worker = self._worker
        with self._redis.pipeline() as pipe:
            pipe.hset(worker.key, mapping={**worker.serialize(), "state": worker.get_state()})
            pipe.expire(worker.key, worker.worker_ttl + 60)
            worker_registration.register(worker, pipe)
            pipe.execute()
        self._publish()

    def _reap(self) -> None:
        reaped = self._broker.reap(self.models, crash_cap=self._config.crash_cap)
        for job_id, queue, word in reaped:
            log.warning("job %s of %s came back from a worker that died: %s", job_id, queue, word)

    def _publish(self) -> None:
        for served in self.models.values():
            publish(self._redis, served.info(), PUBLISH_TTL_S)

    def _observe(self, tile: Tile, busy_s: float) -> None:
        self.models[tile.model].observe(tile, busy_s)

    def _left(self, tile: Tile) -> None:
        self._pools[tile.model].done(tile.model)

    def _check_memory(self) -> None:
        try:
            self._pools.check()
        except EngineError as exc:
            # The loop hears of it with its next tile.
            log.error("checking memory: %s", exc)

    def _keep_costs(self) -> None:
        for served in self.models.values():
            served.costs.save()

    def _sweep(self) -> None:
        for name in self.models:
            dropped = self._broker.sweep(name)
            if dropped:
                log.info("model %s: dropped %d inputs that no job needs", name, dropped)

    def _tell(self) -> None:
        if self._stop.requested:
            self._health.stopping()
        self._health.tick()

    def _end_overdue(self) -> None:
        """Ends the process where an engine call does not return: nothing else can interrupt it."""
        overdue_s = self._lanes.overdue_s()
        if overdue_s > OVERDUE_S:
            log.critical(
                "a tile is %.0f s past its deadline and its engine does not answer: ending the process; "
                "its jobs come back when their lease lapses, %.0f s after the last beat",
                overdue_s,
                self._config.lease_s,
            )
            logging.shutdown()
            os._exit(os.EX_SOFTWARE)
