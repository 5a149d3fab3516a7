"""The slow path: jobs that RQ's own handlers must end (failures, Retry, callbacks, dependents, stop, ...).

Each act is several round trips, fenced by the lease, and belongs to the main thread: RQ guards callbacks with
SIGALRM.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from redis import Redis
from redis.client import Pipeline
from redis.exceptions import RedisError
from rq.callbacks import execute_stopped_callback, execute_success_callback
from rq.exceptions import NoSuchJobError
from rq.executions import Execution
from rq.job import Job, JobStatus
from rq.queue import Queue
from rq.utils import now
from rq.worker.base import BaseWorker

from tensorq import jobhash, keys
from tensorq.cancellation import DISCARD, DONE_TTL_S
from tensorq.errors import RedisUnavailable, TensorqError
from tensorq_worker.broker import Claimed
from tensorq_worker.broker.broker import SWEEP
from tensorq_worker.errors import LeaseLost, PoisonJob
from tensorq_worker.leases import Leases
from tensorq_worker.redisrq.fence import Fence, FencedRedis
from tensorq_worker.redisrq.serializer import WriteOnly
from tensorq_worker.redisrq.stored_job import bare, fetch

FAILED_INPUT_TTL_S = 7 * 24 * 3600

log = logging.getLogger("rq.worker")


class _CallbackRaised(Exception):
    """A user's callback raised ``error``, whatever it is: a redis error too is the callback's own."""

    def __init__(self, error: BaseException) -> None:
        self.error = error


class SlowPath:
    """Ends jobs through RQ.

    A job whose lease is gone is left alone. A redis error passes through before anything was committed, so
    the same act may be tried again.

    Args:
        worker: whose handlers, callbacks' time limits and counters are used.
        redis: a connection that yields bytes.
        leases: where ended jobs are taken out.
        result_ttl_s: how long results are kept where the job does not say.
    """

    def __init__(self, worker: BaseWorker, redis: Redis, leases: Leases, result_ttl_s: int) -> None:
        self._worker = worker
        self._redis = redis
        self._leases = leases
        self._result_ttl_s = result_ttl_s

    def fail(self, job: Claimed, error: BaseException) -> None:
        """Fails a job with ``error``: retried if it has retries left, else in RQ's failed registry."""
        if isinstance(error, TensorqError):
            error = _alone(error)

        def act(worker: BaseWorker, stored: Job, queue: Queue, execution: Execution) -> None:
            if isinstance(error, PoisonJob):
                # It had its tries, and each costs a worker process. The hash keeps the user's for a requeue.
                stored.retries_left = 0
            worker._finalize_failure(stored, queue, execution, (type(error), error, error.__traceback__))

        self._end_surely(job, act)

    def stop(self, job: Claimed) -> None:
        """Ends a job that RQ's stop-job was asked for, as RQ's own worker does."""

        def act(worker: BaseWorker, stored: Job, queue: Queue, execution: Execution) -> None:
            worker._stopped_job_id = stored.id
            stored.ended_at = now()
            try:
                execute_stopped_callback(stored, worker.death_penalty_class)
            except BaseException:
                log.exception("Worker %s: stopped callback for job %s raised", worker.name, stored.id)
            text = "Job stopped by user, tile's rows dropped."
            worker.handle_job_failure(stored, queue=queue, exc_string=text, execution=execution)

        self._end_surely(job, act)

    def succeed(self, job: Claimed, outputs: Mapping[str, np.ndarray], result: bytes) -> None:
        """Finishes a job with its success callback first, as RQ does; a callback that raises fails it.

        Args:
            job: the lease.
            outputs: what the callback gets; arrays of the job's own.
            result: the same, packed.
        """

        def store(pipe: Pipeline, stored: Job) -> None:
            ttl = job.result_ttl_s if job.result_ttl_s is not None else self._result_ttl_s
            # With a ttl of 0 RQ deletes the job in this transaction.
            if ttl != 0:
                pipe.set(keys.result(job.job_id), result, ex=ttl if ttl > 0 else None)
                pipe.hset(keys.job(job.job_id), jobhash.EXECUTION, job.token)
            if stored.get_status(refresh=False) != JobStatus.FINISHED:
                return  # it repeats, with the same input
            discarded = keys.input(job.job_id), keys.inputs(job.model), keys.input_bytes(job.model)
            bound = keys.DONE_LIMIT if job.client else 0
            pipe.eval(DISCARD.source, 4, *discarded, keys.done(job.client), job.job_id, bound, DONE_TTL_S)

        def act(worker: BaseWorker, stored: Job, queue: Queue, execution: Execution) -> None:
            stored.ended_at = now()
            stored._status = JobStatus.FINISHED
            try:
                execute_success_callback(stored, worker.death_penalty_class, outputs)
            except BaseException as exc:
                # Even sys.exit() is the job's own failure, as in RQ's worker.
                raise _CallbackRaised(exc) from exc
            registry = queue.started_job_registry
            worker.handle_job_success(stored, queue, registry, execution)
            stored.send_webhooks(JobStatus.FINISHED)

        try:
            self._end(job, act, store)
        except (RedisError, RedisUnavailable):
            raise
        except _CallbackRaised as exc:
            self.fail(job, exc.error)
        except Exception as exc:
            # RQ stumbled over what the job's hash says.
            self.fail(job, exc)

    def call(self, job: Claimed) -> None:
        """Runs a function job the way RQ's SimpleWorker does, unpickling and all."""
        worker = self._worker
        try:
            stored = worker.job_class.fetch(job.job_id, connection=self._redis, serializer=worker.serializer)
            queue = worker.queue_class(job.queue, connection=self._redis, serializer=worker.serializer)
            worker.perform_job(stored, queue, self._execution(job, stored))
        except RedisError:
            raise
        except NoSuchJobError:
            log.warning("job %s was deleted before it could run", job.job_id)
        except Exception as exc:
            # RQ stumbled over what the job's hash says.
            self.fail(job, exc)
        self._leases.end([job])

    def _end_surely(self, job: Claimed, act: Any) -> None:
        """Ends a job without a result; where RQ stumbles over what its hash says, without that."""
        try:
            self._end(job, act, self._after_failure)
        except (RedisError, RedisUnavailable):
            raise
        except Exception:
            log.exception("job %s: RQ stumbles over what its hash says", job.job_id)
            self._end(job, act, self._after_failure, read=bare)

    def _end(self, job: Claimed, act: Any, extra: Any, read: Any = fetch) -> None:
        stored: Job | None = None
        fence = Fence(job, lambda pipe: extra(pipe, stored))
        try:
            fence.check(self._redis)
            stored = read(self._redis, job, self._worker.job_class)
            queue = self._worker.queue_class(job.queue, connection=self._redis, serializer=WriteOnly)
            # A shallow copy, so that only this act's pipelines are fenced.
            shadow = copy.copy(self._worker)
            shadow.connection = FencedRedis(self._redis, fence)  # type: ignore[assignment]
            shadow.executions = {}
            shadow.handle_exception = partial(_handle, self._worker)  # type: ignore[method-assign]
            act(shadow, stored, queue, self._execution(job, stored))
        except LeaseLost as exc:
            log.warning("%s; nothing of it was written", exc)
            self._clear(job)
            self._leases.end([job])
            return
        # handle_job_failure logs what its commit raises and goes on.
        if not (fence.lost or fence.committed):
            raise RedisUnavailable(f"job {job.job_id}: its end could not be stored yet")
        self._leases.end([job])

    def _clear(self, job: Claimed) -> None:
        """Drops what a stock cancel or delete leaves of a lease: no beat asks for it once it is ended."""
        with self._redis.pipeline() as pipe:
            pipe.srem(keys.executions_of(self._worker.name), f"{job.job_id}:{job.token}")
            pipe.unlink(keys.execution(job.job_id, job.token))
            pipe.zrem(keys.EXECUTIONS + job.job_id, job.token)
            if job.model:
                index = keys.inputs(job.model), keys.input_bytes(job.model)
                pipe.eval(SWEEP.source, 2, *index, keys.JOB, keys.INPUT, job.job_id)
            pipe.execute()

    def _execution(self, job: Claimed, stored: Job) -> Execution:
        execution = Execution(job.token, job.job_id, self._redis, worker_name=self._worker.name)
        if stored.started_at is not None:
            execution.created_at = stored.started_at
        return execution

    def _after_failure(self, pipe: Pipeline, stored: Job) -> None:
        job = self._leases.get(stored.id)
        if job is None or not job.model:
            return
        pipe.hdel(keys.job(job.job_id), jobhash.PLAIN, jobhash.SUSPECT, jobhash.CRASHES, jobhash.POISON)
        if stored.get_status(refresh=False) in (JobStatus.QUEUED, JobStatus.SCHEDULED):
            return
        ttl = stored.failure_ttl
        if ttl is None or not 0 <= ttl <= FAILED_INPUT_TTL_S:
            ttl = FAILED_INPUT_TTL_S
        pipe.expire(keys.input(job.job_id), ttl)
        if job.client:
            pipe.rpush(keys.done(job.client), job.job_id)
            pipe.ltrim(keys.done(job.client), -keys.DONE_LIMIT, -1)
            pipe.expire(keys.done(job.client), DONE_TTL_S)


def _handle(worker: BaseWorker, stored: Job, *exc_info: Any) -> None:
    """Calls the worker's exception handlers; the trouble of one is not its job's, which fails as it is."""
    try:
        worker.handle_exception(stored, *exc_info)
    except BaseException:
        log.exception("Worker %s: an exception handler raised for job %s", worker.name, stored.id)


def _alone(error: TensorqError) -> TensorqError:
    """The error without traceback and causes: its message is written for the user, who sees all of it."""
    error.__cause__ = None
    error.__suppress_context__ = True
    return error.with_traceback(None)
