"""Storing jobs in Redis: payload, job hash and queue in one round trip."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from redis import Redis
from redis.client import Pipeline
from redis.exceptions import WatchError

from tensorq import jobhash, keys
from tensorq.connection import watch_again
from tensorq.errors import ConfigError, QueueFull, WireError
from tensorq.jobhash import JobOptions
from tensorq.names import queue_name
from tensorq.scripting import Argument, Script

# Through Lua only what is small: 64 payloads of 1 MB in scripts were seen to block the server for 106 ms.
INLINE_BYTES = 64 * 1024
CHUNK_JOBS = 128
CHUNK_BYTES = 4 * 1024 * 1024
STAGED_TTL_S = 600

SUBMIT = Script("tensorq", "submit")
STORED, KNOWN, FULL, LOST = 1, 2, 0, -1


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of a model's queue, enforced where jobs are stored; None is no bound.

    Attributes:
        max_jobs: jobs waiting on one of the model's queues.
        max_bytes: bytes of the model's stored inputs, waiting and running.

    Raises:
        ConfigError: a bound below 1.
    """

    max_jobs: int | None = None
    max_bytes: int | None = None

    def __post_init__(self) -> None:
        for name, bound in (("max_jobs", self.max_jobs), ("max_bytes", self.max_bytes)):
            if bound is not None and bound < 1:
                raise ConfigError(f"limits: {name} is {bound}, expected a number >= 1, or None for no bound")

    def over(self, other: Limits) -> Limits:
        """These bounds, and ``other``'s where there is none here."""
        return Limits(
            self.max_jobs if self.max_jobs is not None else other.max_jobs,
            self.max_bytes if self.max_bytes is not None else other.max_bytes,
        )


@dataclass(frozen=True, slots=True)
class Request:
    """One job on its way into Redis.

    Attributes:
        job_id: RQ job id.
        rows: rows along the batch axis, a hint for the claim's bounds.
        payload: packed tensors.
    """

    job_id: str
    rows: int
    payload: bytes


def new_job_id() -> str:
    """A random job id of 32 hexadecimal digits, as RQ's own are."""
    return os.urandom(16).hex()


def submit(
    redis: Redis, model: str, requests: Sequence[Request], client_id: str, options: JobOptions, limits: Limits
) -> list[int]:
    """Stores jobs, in order, in one round trip for up to about 4 MiB of payload.

    Args:
        redis: a connection that does not decode responses.
        model: a valid model name.
        requests: what to store; ids that Redis knows already are left as they are.
        client_id: whose completion list is told, or empty.
        options: shared by all; ``depends_on`` is not looked at here.
        limits: bounds to enforce.

    Returns:
        For each request STORED, KNOWN or FULL.

    Raises:
        WireError: a large payload vanished before its job was stored (Redis evicts or lost it).
    """
    outcomes: list[int] = []
    head = _head(model, client_id, options, limits, "")
    for batch in _round_trips(requests):
        commands, calls = [], []
        for chunk in batch:
            commands += [
                ("SET", keys.input(r.job_id), r.payload, "EX", STAGED_TTL_S)
                for r in chunk
                if len(r.payload) > INLINE_BYTES
            ]
            calls.append((_keys(model, options), [*head, *_tail(chunk)]))
        for reply in SUBMIT.run_after(redis, commands, calls):
            outcomes += reply[2:]
    if LOST in outcomes:
        lost = requests[outcomes.index(LOST)].job_id
        raise WireError(f"job {lost}: Redis lost its payload before the job was stored; submit it again")
    return outcomes


def submit_own(
    redis: Redis, model: str, requests: Sequence[Request], client_id: str, options: JobOptions, limits: Limits
) -> list[int]:
    """As `submit`, for jobs whose ids are the caller's own: Redis may hold a job of such an id already.

    A job that is there keeps its input. One that is gone may have left an entry in the index of inputs, until
    a worker's next sweep, and a result: a new job takes over neither.
    """
    return [_submit_own(redis, model, request, client_id, options, limits) for request in requests]


def _submit_own(
    redis: Redis, model: str, request: Request, client_id: str, options: JobOptions, limits: Limits
) -> int:
    names = _keys(model, options)
    args = [*_head(model, client_id, options, limits, keys.RESULT), *_tail([request])]
    if len(request.payload) <= INLINE_BYTES:
        return int(SUBMIT(redis, names, args)[2])

    def store(pipe: Pipeline) -> int:
        pipe.multi()
        pipe.set(keys.input(request.job_id), request.payload, ex=STAGED_TTL_S)
        # EVAL, since a script that the server does not know fails alone inside MULTI.
        pipe.eval(SUBMIT.source, len(names), *names, *args)
        return int(pipe.execute()[1][2])

    # A plain SET before the script would overwrite the input of a job that waits or runs.
    return store_where_free(redis, request.job_id, store)


def store_where_free(redis: Redis, job_id: str, store: Callable[[Pipeline], int]) -> int:
    """Stores a job in a transaction that goes through only while Redis has none of its id.

    Args:
        redis: a connection that does not decode responses.
        job_id: the RQ job id.
        store: begins MULTI on the pipeline it gets and executes it, or stores nothing; returns the outcome.
            It is called again where somebody wrote to the job's hash meanwhile.

    Returns:
        What ``store`` does, or KNOWN where there is such a job.

    Raises:
        ConnectionError, TimeoutError: Redis hung up each time.
    """
    lost = 0
    with redis.pipeline(transaction=True) as pipe:
        while True:
            try:
                pipe.watch(keys.job(job_id))
                return KNOWN if pipe.exists(keys.job(job_id)) else store(pipe)
            except WatchError as exc:
                lost = watch_again(exc, lost)


def refuse_full(model: str, outcomes: Sequence[int], jobs: Sequence[Any], limits: Limits) -> None:
    """Raises `QueueFull` where an outcome is FULL, with the handles that were stored.

    Raises:
        QueueFull: with ``accepted`` and ``refused``.
    """
    refused = [position for position, outcome in enumerate(outcomes) if outcome == FULL]
    if refused:
        raise QueueFull(
            f"queue of model {model!r} is full: {len(refused)} of {len(outcomes)} jobs refused, at most "
            f"{limits.max_jobs or 'any'} jobs waiting and {limits.max_bytes or 'any'} bytes stored; wait for "
            "results, add a worker, or raise the model's [queue] limits",
            accepted=[job for job, outcome in zip(jobs, outcomes, strict=True) if outcome != FULL],
            refused=refused,
        )


def _keys(model: str, options: JobOptions) -> list[str]:
    queue = keys.queue(queue_name(model, options.priority))
    return [queue, keys.QUEUES, keys.inputs(model), keys.input_bytes(model), keys.WAKE]


def _head(model: str, client_id: str, options: JobOptions, limits: Limits, results: str) -> list[Argument]:
    fields = jobhash.common_fields(model, client_id, options, datetime.now(UTC))
    return [
        keys.JOB,
        keys.INPUT,
        model,
        limits.max_jobs or 0,
        limits.max_bytes or 0,
        options.ttl_s or 0,
        int(options.at_front),
        results,
        2 * len(fields),
        *(part for item in fields.items() for part in item),
    ]


def _tail(chunk: Sequence[Request]) -> Iterator[Argument]:
    for request in chunk:
        size = len(request.payload)
        yield from (request.job_id, request.rows, size, request.payload if size <= INLINE_BYTES else b"")


def _round_trips(requests: Sequence[Request]) -> Iterator[list[list[Request]]]:
    """Splits requests into round trips of at most about CHUNK_BYTES, each of calls of at most CHUNK_JOBS."""
    batch: list[list[Request]] = []
    chunk: list[Request] = []
    size_bytes = 0
    for request in requests:
        if chunk and size_bytes + len(request.payload) > CHUNK_BYTES:
            yield [*batch, chunk]
            batch, chunk, size_bytes = [], [], 0
        elif len(chunk) == CHUNK_JOBS:
            batch.append(chunk)
            chunk = []
        chunk.append(request)
        size_bytes += len(request.payload)
    if chunk:
        yield [*batch, chunk]
