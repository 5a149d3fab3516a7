"""Jobs that wait for others: RQ's own dependencies, with our payload stored in the same transaction."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from redis import Redis
from redis.client import Pipeline
from rq import Queue
from rq.job import Job as RQJob
from rq.job import JobStatus
from rq.serializers import JSONSerializer

from tensorq import jobhash, keys
from tensorq.cancellation import discard
from tensorq.jobhash import JobOptions
from tensorq.names import queue_name
from tensorq.submission import FULL, STORED, Limits, Request, store_where_free


def submit(
    redis: Redis, model: str, requests: Sequence[Request], client_id: str, options: JobOptions, limits: Limits
) -> list[int]:
    """Stores jobs that depend on ``options.depends_on``; RQ queues them when those have finished.

    Limits are looked at before the job is stored, not in the same step: producers that defer jobs at the
    same moment may pass them by a few jobs.

    Args:
        redis: a connection that does not decode responses.
        model: a valid model name.
        requests: what to store; ids that Redis knows already are left as they are.
        client_id: whose completion list is told, or empty.
        options: what was asked of the job.
        limits: bounds to look at.

    Returns:
        For each request STORED, KNOWN or FULL, as in `tensorq.submission`.
    """
    return [_submit_one(redis, model, request, client_id, options, limits) for request in requests]


def _submit_one(
    redis: Redis, model: str, request: Request, client_id: str, options: JobOptions, limits: Limits
) -> int:
    queue = Queue(queue_name(model, options.priority), connection=redis, serializer=JSONSerializer)
    size_bytes = len(request.payload)
    fields = jobhash.common_fields(model, client_id, options, datetime.now(UTC))
    fields |= {jobhash.ROWS: request.rows, jobhash.BYTES: size_bytes}

    def store(pipe: Pipeline) -> int:
        if _full(redis, model, queue, size_bytes, limits):
            return FULL
        job = _rq_job(redis, request.job_id, fields, options)
        queue.enqueue_job(job, pipeline=pipe, at_front=options.at_front)
        ours: dict[Any, Any] = {name: value for name, value in fields.items() if name.startswith("tensorq_")}
        pipe.hset(keys.job(request.job_id), mapping=ours)
        # A job of this id that is gone may have left its input, its entry in the index and a result.
        discard(pipe, request.job_id, model, "")
        if redis.exists(keys.result(request.job_id)):
            pipe.unlink(keys.result(request.job_id))
        # RQ starts ttl anew when it queues the job.
        expiry_s = 2 * options.ttl_s + 600 if options.ttl_s is not None else None
        pipe.set(keys.input(request.job_id), request.payload, ex=expiry_s)
        pipe.hset(keys.inputs(model), request.job_id, str(size_bytes))
        pipe.incrby(keys.input_bytes(model), size_bytes)
        if job.get_status(refresh=False) != JobStatus.DEFERRED:
            pipe.xadd(keys.WAKE, {"model": model}, maxlen=1000)
        pipe.execute()
        return STORED

    return store_where_free(redis, request.job_id, store)


def _full(redis: Redis, model: str, queue: Queue, size_bytes: int, limits: Limits) -> bool:
    if limits.max_jobs is not None and queue.count >= limits.max_jobs:
        return True
    stored = int(redis.get(keys.input_bytes(model)) or 0)
    return limits.max_bytes is not None and stored + size_bytes > limits.max_bytes


def _rq_job(redis: Redis, job_id: str, fields: dict[str, object], options: JobOptions) -> RQJob:
    job = RQJob(job_id, connection=redis, serializer=JSONSerializer)
    raw = {
        name.encode(): value if isinstance(value, bytes) else str(value).encode()
        for name, value in fields.items()
    }
    job.restore(raw)
    job.process_dependencies(list(options.depends_on))
    job.enqueue_at_front = options.at_front
    return job
