"""BatchWorker: an RQ worker that claims many jobs at once and runs them in tiles.

RQ's worker gives it a name, registration, commands, suspension, the scheduler and maintenance; claiming,
running and finishing are the loop's. It does not fork: CUDA would not survive it.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import time
from types import FrameType
from typing import Any, NoReturn

from redis.exceptions import RedisError
from rq import worker_registration
from rq.defaults import DEFAULT_LOGGING_DATE_FORMAT, DEFAULT_LOGGING_FORMAT
from rq.queue import Queue
from rq.registry import clean_registries
from rq.suspension import is_suspended
from rq.utils import now
from rq.worker.base import BaseWorker, DequeueStrategy, WorkerStatus

from tensorq.connection import binary_client, translated
from tensorq.errors import ConfigError, RedisUnavailable, TensorqError
from tensorq.names import model_queues, parse_queue
from tensorq.options import LONGEST_S
from tensorq_worker.config import WorkerConfig, load_config
from tensorq_worker.errors import EagerLoadFailed, WorkerError, WorkerFault, one_line
from tensorq_worker.loop import Stop
from tensorq_worker.loop.backoff import Backoff
from tensorq_worker.redisrq.serializer import WriteOnly
from tensorq_worker.server_check import check_server
from tensorq_worker.service import Service

log = logging.getLogger("rq.worker")

CHECK_EVERY_S = 1.0
SECOND_SIGNAL_S = 1.0
ANSWER_S = 60


class BatchWorker(BaseWorker):
    """Serves models of a repository.

    Constructing one is cheap and touches no model: RQ constructs workers to list them.

    Args:
        queues: models, or queues of models: each model's three queues are served.
        config: settings; None reads ``TENSORQ_*``.
        args, kwargs: RQ's own.
    """

    def __init__(self, queues: Any, *args: Any, config: WorkerConfig | None = None, **kwargs: Any) -> None:
        super().__init__(queues, *args, **kwargs)
        self._config = config
        self._stop = Stop()
        self._stopped_at = 0.0
        self._checked_at = 0.0
        self._suspended = False

    @property
    def connection_timeout(self) -> int:
        """Seconds that an answer of Redis may take: beats must keep leases though the other end vanished.

        RQ's, of minutes, is for a pop that blocks, and there is none here.
        """
        return ANSWER_S

    def work(
        self,
        burst: bool = False,
        logging_level: str | None = None,
        date_format: str = DEFAULT_LOGGING_DATE_FORMAT,
        log_format: str = DEFAULT_LOGGING_FORMAT,
        max_jobs: int | None = None,
        max_idle_time: int | None = None,
        with_scheduler: bool = False,
        dequeue_strategy: DequeueStrategy = DequeueStrategy.DEFAULT,
    ) -> bool:
        """Works until told to stop; see RQ's worker for the arguments.

        ``dequeue_strategy`` has no meaning here: the tile with the oldest job runs first.

        Returns:
            Whether any job was claimed.

        Raises:
            SystemExit: with os.EX_CONFIG for a mistake in the settings or the repository, os.EX_UNAVAILABLE
                for a Redis that cannot be used, os.EX_SOFTWARE where the process must be started again.
        """
        try:
            service = self._prepare(max_jobs)
        except RedisUnavailable as exc:
            _leave(os.EX_UNAVAILABLE, exc)
        except TensorqError as exc:
            _leave(os.EX_CONFIG, exc)
        try:
            self.bootstrap(logging_level, date_format, log_format)
        except ValueError as exc:
            # RQ's word for a name that another worker has.
            _leave(os.EX_CONFIG, exc)
        except RedisError as exc:
            _leave(os.EX_UNAVAILABLE, exc)
        _share_log()
        if with_scheduler:
            self._start_scheduler(burst, logging_level, date_format, log_format)
        self._install_signal_handlers()
        fault: WorkerError | None = None
        try:
            # Before it says ready: the first job must not wait for it.
            self._maintain()
            service.start()
            self._serve(service, burst, max_idle_time)
        except EagerLoadFailed as exc:
            fault = exc
        except WorkerFault as exc:
            service.hand_back(keep_running=True)
            fault = exc
        finally:
            ended = service.close()
            self._goodbye()
        if fault is not None or not ended:
            _leave(_code(fault), fault, at_once=not ended)
        return service.loop.claimed_jobs > 0

    def clean_registries(self) -> None:
        """RQ's cleaning, less that of intermediate queues, which nothing here uses.

        An id left in one by a stock worker would have RQ fail a job that is finished by now.
        """
        for queue in self.queues:
            if queue.acquire_maintenance_lock():
                clean_registries(queue, self._exc_handlers)
                worker_registration.clean_worker_registry(queue)
                queue.release_maintenance_lock()
        self.last_cleaned_at = now()  # type: ignore[assignment]

    def handle_payload(self, message: Any) -> None:
        """Commands from RQ's tools; stopping a job is ours, as many run at once."""
        try:
            payload = json.loads(message["data"])
            command, job_id = payload["command"], payload.get("job_id")
        except (ValueError, TypeError, KeyError, AttributeError):
            log.warning("Worker %s: ignored an unreadable command: %r", self.name, message["data"])
            return
        if command in ("stop-job", "stop-execution") and job_id:
            self._stop.job(str(job_id))
        else:
            super().handle_payload(message)

    def _install_signal_handlers(self) -> None:
        signal.signal(signal.SIGINT, self._on_signal)
        signal.signal(signal.SIGTERM, self._on_signal)

    def _on_signal(self, signum: int, frame: FrameType | None) -> None:
        """First signal: finish what was claimed, then end. A later one: hand it back and end.

        RQ's worker pool may send the first one twice within a second.
        """
        if not self._stop.requested:
            self._stopped_at = time.monotonic()
            self._stop_requested = True
            self._stop.request()
        elif time.monotonic() - self._stopped_at >= SECOND_SIGNAL_S:
            self._stop.force()

    def _prepare(self, max_jobs: int | None) -> Service:
        config = self._config if self._config is not None else load_config({})
        _expect_durations(self.default_result_ttl, self.worker_ttl)
        redis = binary_client(self.connection)
        with translated(redis):
            check_server(redis)
        if not config.allow_functions:
            # What RQ reads for us, its scheduler included, must not unpickle what jobs carry.
            self.serializer = WriteOnly
        models = list(dict.fromkeys(parse_queue(queue.name)[0] for queue in self.queues))
        service = Service(self, redis, config, models, self._stop, max_jobs)
        self.queues = [self._queue(name) for model in models for name in model_queues(model)]
        self._ordered_queues = self.queues[:]
        return service

    def _queue(self, name: str) -> Queue:
        return self.queue_class(
            name,
            connection=self.connection,
            job_class=self.job_class,
            serializer=self.serializer,
            death_penalty_class=self.death_penalty_class,
        )

    def _serve(self, service: Service, burst: bool, max_idle_s: int | None) -> None:
        loop, stop, backoff, announced = service.loop, self._stop, Backoff(), False
        idle_since = time.monotonic()
        while True:
            try:
                stop.wake.clear()
                if stop.forced:
                    log.warning("Worker %s: handing back %d jobs", self.name, service.hand_back())
                    return
                self._check(burst)
                claiming = not (stop.requested or self._suspended or loop.exhausted)
                worked = loop.step(claiming)
                if not announced:
                    service.announce()
                    announced = True
                if worked or loop.busy:
                    idle_since = time.monotonic()
                    self._note(WorkerStatus.BUSY)
                elif stop.requested or loop.exhausted or burst:
                    log.info("Worker %s: done, quitting", self.name)
                    return
                elif max_idle_s is not None and time.monotonic() - idle_since >= max_idle_s:
                    log.info("Worker %s: idle for %d seconds, quitting", self.name, max_idle_s)
                    return
                else:
                    self._note(WorkerStatus.IDLE)
                backoff.reset()
            except (RedisError, RedisUnavailable) as exc:
                if stop.requested and not loop.holding:
                    # What a claim without a reply may have taken comes back when its lease lapses.
                    log.warning("Worker %s: holds nothing, quitting without Redis: %s", self.name, exc)
                    return
                # Leases are kept by their fence, and what was being done is done again.
                backoff.wait(stop.wake, exc, "working")
                continue
            if not worked:
                stop.wake.wait(loop.until_next_ms() / 1000)

    def _check(self, burst: bool) -> None:
        """Looks, once a second, at what RQ's tools may have asked for."""
        if time.monotonic() - self._checked_at < CHECK_EVERY_S:
            return
        self._checked_at = time.monotonic()
        # Without a heartbeat, which maxmemory would refuse: the pulse sends those.
        suspended = bool(is_suspended(self.connection))
        if suspended and not self._suspended:
            log.info("Worker %s: suspended, run `rq resume` to resume", self.name)
            self._note(WorkerStatus.SUSPENDED)
            if burst:
                self._stop.request()
        self._suspended = suspended
        self._maintain()

    def _maintain(self) -> None:
        """Runs RQ's maintenance where it is due."""
        if self.should_run_maintenance_tasks:
            try:
                self.run_maintenance_tasks()
            except RedisError as exc:
                # Never in the way of the jobs that are held.
                log.error("Worker %s: maintenance: Redis: %s", self.name, exc)
            except Exception:
                # RQ stumbled over the hash of an abandoned job that is not ours, or over a handler for it.
                log.exception("Worker %s: maintenance", self.name)

    def _note(self, state: WorkerStatus) -> None:
        if self._suspended and state is WorkerStatus.IDLE:
            state = WorkerStatus.SUSPENDED
        if self.get_state() != state:
            self.set_state(state)

    def _goodbye(self) -> None:
        try:
            self.teardown()
        except RedisError as exc:
            log.error("Worker %s: could not say goodbye to Redis: %s", self.name, exc)


def _expect_durations(result_ttl_s: int, worker_ttl_s: int) -> None:
    """Refuses what Redis would, each time that a job ends or the worker beats."""
    if not -1 <= result_ttl_s <= LONGEST_S:
        raise ConfigError(
            f"result ttl: got {result_ttl_s}, expected seconds >= 0, at most {LONGEST_S}, or -1 for ever"
        )
    if not 1 <= worker_ttl_s <= LONGEST_S:
        raise ConfigError(f"worker ttl: got {worker_ttl_s}, expected seconds > 0, at most {LONGEST_S}")


def _share_log() -> None:
    """Has what engines log (builds, loads, evictions) go where RQ's worker logs, at its level."""
    engines = logging.getLogger("tensorq_engines")
    engines.setLevel(log.getEffectiveLevel())
    for handler in log.handlers:
        if handler not in engines.handlers:
            engines.addHandler(handler)


def _code(fault: WorkerError | None) -> int:
    if fault is None:
        return os.EX_OK
    return os.EX_CONFIG if isinstance(fault, EagerLoadFailed) else os.EX_SOFTWARE


def _leave(code: int, error: Exception | None, at_once: bool = False) -> NoReturn:
    """Ends the process with a message for people and a code for a supervisor.

    Args:
        code: for the supervisor.
        error: the message.
        at_once: a thread is still in native code, upon which Python's own end would abort.
    """
    if error is not None:
        print(f"tensorq worker: {one_line(error)}", file=sys.stderr, flush=True)
    if at_once:
        logging.shutdown()
        os._exit(code)
    raise SystemExit(code)
