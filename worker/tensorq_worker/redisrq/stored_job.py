"""Reads a job as RQ's `Job`, without unpickling anything and whatever its hash holds."""

from __future__ import annotations

import logging
from functools import partial

from redis import Redis
from redis.client import Pipeline
from redis.exceptions import RedisError
from rq.job import Job, JobStatus
from rq.utils import now

from tensorq import jobhash, keys
from tensorq_worker.broker import Claimed
from tensorq_worker.errors import LeaseLost
from tensorq_worker.redisrq.serializer import WriteOnly

log = logging.getLogger("rq.worker")

# What RQ parses: a hash written by hand may hold anything there, and its job must still be failed.
_PARSED = (
    *("timeout", "ttl", "result_ttl", "failure_ttl", "number_of_retries", "retries_left", "retry_intervals"),
    *("repeats_left", "repeat_intervals", "rate_limit_key", "rate_limit_concurrency", "webhooks"),
    *("success_callback_timeout", "failure_callback_timeout", "stopped_callback_timeout"),
    *("created_at", "enqueued_at", "started_at", "ended_at", "last_heartbeat", "allow_dependency_failures"),
    *("enqueue_at_front", "enqueue_at_front_on_retry", "dependency_ids", "dependency_id", "description"),
    *("exc_info", "result", "group_id", "worker_name"),
    *("success_callback_name", "failure_callback_name", "stopped_callback_name"),
)


def fetch(redis: Redis, job: Claimed, job_class: type[Job]) -> Job:
    """Reads a leased job; one that RQ cannot read is bared.

    Raises:
        LeaseLost: its hash is gone.
    """
    try:
        stored = job_class.fetch(job.job_id, connection=redis, serializer=WriteOnly)
    except RedisError:
        raise
    except Exception:
        return bare(redis, job, job_class)
    return _led_by(job, stored)


def bare(redis: Redis, job: Claimed, job_class: type[Job]) -> Job:
    """A leased job without anything that RQ parses or acts upon, which its hash loses too.

    Raises:
        LeaseLost: its hash is gone.
    """
    key = keys.job(job.job_id)
    if redis.hget(key, "status") is None:
        raise LeaseLost(f"job {job.job_id}: its hash is gone")
    log.warning("job %s: RQ cannot read its hash; what it would act upon there is dropped", job.job_id)
    redis.hdel(key, *_PARSED)
    redis.hsetnx(key, "data", jobhash.stock_data(job.model))
    redis.hset(key, "origin", job.queue)
    stored = job_class(connection=redis, serializer=WriteOnly)
    # Not by its constructor, which refuses what is no id of RQ's.
    stored._id = job.job_id
    stored.restore({b"data": jobhash.stock_data(job.model), b"status": b"started"})
    return _led_by(job, stored)


def _led_by(job: Claimed, stored: Job) -> Job:
    """Sets what the lease knows better than the hash."""
    stored.origin = job.queue
    stored.started_at = stored.started_at or now()
    # What `data` says, without reading it: RQ's logs and handlers ask for the name.
    stored._func_name = jobhash.STOCK_FUNCTION if job.model else "(function not read)"
    stored._instance, stored._args, stored._kwargs = None, (job.model,), {}
    stored.set_status = partial(_set_status, stored)  # type: ignore[method-assign]
    return stored


def _set_status(stored: Job, status: JobStatus, pipeline: Pipeline | None = None) -> None:
    """Sets the status in a transaction only.

    Job.retry would write it at once as well, and to the fence the lease would be gone.
    """
    stored._status = status
    if pipeline is not None:
        pipeline.hset(stored.key, "status", status)
