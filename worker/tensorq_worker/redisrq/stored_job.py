"""Reads a job as RQ's `Job`, without unpickling anything and whatever its hash holds."""

from __future__ import annotations

from functools import partial

from redis import Redis
from redis.client import Pipeline
from redis.exceptions import RedisError
from rq.exceptions import NoSuchJobError
from rq.job import Job, JobStatus

from tensorq import jobhash, keys
from tensorq_worker.broker import Claimed
from tensorq_worker.errors import LeaseLost
from tensorq_worker.redisrq.serializer import WriteOnly

# What RQ parses: a hash written by hand may hold anything there, and its job must still be failed.
_PARSED = (
    *("timeout", "ttl", "result_ttl", "failure_ttl", "number_of_retries", "retries_left", "retry_intervals"),
    *("repeats_left", "repeat_intervals", "rate_limit_key", "rate_limit_concurrency", "webhooks"),
    *("success_callback_timeout", "failure_callback_timeout", "stopped_callback_timeout"),
    *("created_at", "enqueued_at", "started_at", "ended_at", "last_heartbeat", "allow_dependency_failures"),
    *("enqueue_at_front", "enqueue_at_front_on_retry", "dependency_ids", "dependency_id", "description"),
    *("exc_info", "result", "group_id", "worker_name"),
)


def fetch(redis: Redis, job: Claimed, job_class: type[Job]) -> Job:
    """Reads a leased job.

    Raises:
        LeaseLost: its hash is gone.
    """
    try:
        stored = job_class.fetch(job.job_id, connection=redis, serializer=WriteOnly)
    except RedisError:
        raise
    except Exception:
        stored = _fetch_mended(redis, job, job_class)
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


def _fetch_mended(redis: Redis, job: Claimed, job_class: type[Job]) -> Job:
    key = keys.job(job.job_id)
    if redis.hget(key, "status") is None:
        raise LeaseLost(f"job {job.job_id}: its hash is gone")
    redis.hdel(key, *_PARSED)
    redis.hsetnx(key, "data", jobhash.stock_data(job.model))
    redis.hset(key, "origin", job.queue)
    try:
        return job_class.fetch(job.job_id, connection=redis, serializer=WriteOnly)
    except NoSuchJobError as exc:
        raise LeaseLost(f"job {job.job_id}: its hash is gone") from exc
