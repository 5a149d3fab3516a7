"""Every Redis key that tensorq touches, with its type and life time.

RQ's keys are written exactly as RQ 3.0 writes them and honour ``RQ_KEY_PREFIX``; ours start with
``tensorq`` or ``TENSORQ_KEY_PREFIX``, which must be set alike for producers and workers.

| key | type | lives |
|---|---|---|
| rq:queues | set | for good |
| rq:queue:QUEUE | list | while it holds a job |
| rq:job:ID | hash | ttl while queued; for good while started; result_ttl or failure_ttl after |
| rq:wip:QUEUE | zset | score: lease expiry + LEASE_OFFSET for ours, plain expiry for foreign jobs |
| rq:finished:QUEUE, rq:failed:QUEUE | zset | score: expiry |
| rq:execution:ID:EXECUTION | hash | lease + 60 s, renewed by each beat |
| rq:executions:ID | zset | lease + 120 s: never less than the execution's hash |
| rq:worker:WORKER:executions | set | with the worker |
| rq:results:ID | stream | result_ttl or failure_ttl |
| tensorq:input:ID | string | until finished; failed: failure_ttl, at most 7 days |
| tensorq:result:ID | string | result_ttl |
| tensorq:staged:ID:EXECUTION | string | 60 s: a large result on its way into its place |
| tensorq:inputs:MODEL | hash | id -> bytes of each stored input |
| tensorq:input-bytes:MODEL | integer | the sum of that hash |
| tensorq:models | zset | model -> when its publication lapses |
| tensorq:model:MODEL | string | 60 s, renewed while a worker serves the model |
| tensorq:done:CLIENT | list | 1 hour from the last push, at most DONE_LIMIT ids |
| tensorq:wake | stream | at most about 1,000 entries |
| tensorq:claim:WORKER | string | 1 hour: the token of the last claim |
| tensorq:running:WORKER | hash | 1 day from the last beat: lane and slot -> ids of the tile there |
| tensorq:stats:MODEL | hash | for good: counters jobs, rows, tiles, padding |
"""

from __future__ import annotations

import os
import re

from rq.defaults import RQ_KEY_PREFIX

TENSORQ_KEY_PREFIX = os.environ.get("TENSORQ_KEY_PREFIX", "tensorq")
if not re.fullmatch(r"[A-Za-z0-9_.:{}-]+", TENSORQ_KEY_PREFIX):
    raise ValueError(
        f"Invalid TENSORQ_KEY_PREFIX {TENSORQ_KEY_PREFIX!r}: "
        "only letters, digits, and _ . : - { } are allowed"
    )

# Added to our scores in rq:wip so that no stock cleanup, which looks for scores up to now, sees them lapse.
LEASE_OFFSET = 2**33
DONE_LIMIT = 100_000

RQ = RQ_KEY_PREFIX
OURS = TENSORQ_KEY_PREFIX

QUEUES = f"{RQ}:queues"
JOB = f"{RQ}:job:"
QUEUE = f"{RQ}:queue:"
WIP = f"{RQ}:wip:"
FINISHED = f"{RQ}:finished:"
EXECUTION = f"{RQ}:execution:"
EXECUTIONS = f"{RQ}:executions:"
RESULTS = f"{RQ}:results:"
WORKER = f"{RQ}:worker:"

INPUT = f"{OURS}:input:"
RESULT = f"{OURS}:result:"
STAGED = f"{OURS}:staged:"
DONE = f"{OURS}:done:"
MODELS = f"{OURS}:models"
WAKE = f"{OURS}:wake"


def job(job_id: str) -> str:
    """The RQ job hash."""
    return JOB + job_id


def queue(name: str) -> str:
    """The RQ queue's list of job ids."""
    return QUEUE + name


def wip(name: str) -> str:
    """RQ's started registry of a queue."""
    return WIP + name


def results(job_id: str) -> str:
    """RQ's stream of a job's outcomes."""
    return RESULTS + job_id


def input(job_id: str) -> str:
    """A job's packed input tensors."""
    return INPUT + job_id


def result(job_id: str) -> str:
    """A job's packed output tensors."""
    return RESULT + job_id


def staged(job_id: str, execution_id: str) -> str:
    """A large result that `finish` moves to its place, if the execution still holds the lease."""
    return f"{STAGED}{job_id}:{execution_id}"


def inputs(model: str) -> str:
    """Index of the inputs stored for a model: job id -> bytes."""
    return f"{OURS}:inputs:{model}"


def input_bytes(model: str) -> str:
    """Sum over the index of inputs."""
    return f"{OURS}:input-bytes:{model}"


def model(name: str) -> str:
    """What workers publish of a model, as JSON."""
    return f"{OURS}:model:{name}"


def done(client_id: str) -> str:
    """A client's completion list: ids of its jobs as they end. A hint, never the truth."""
    return DONE + client_id


def claim(worker: str) -> str:
    """Token of a worker's last claim, so that a repeat after a lost reply returns the same batch."""
    return f"{OURS}:claim:{worker}"


def running(worker: str) -> str:
    """Ids of the tiles that a worker's lanes run now: the suspects if it dies."""
    return f"{OURS}:running:{worker}"


def stats(model: str) -> str:
    """Counters of a model over all workers: jobs, rows, tiles and padding (rows added to fill tiles)."""
    return f"{OURS}:stats:{model}"


def executions_of(worker: str) -> str:
    """RQ's set of a worker's executions, as ``ID:EXECUTION``."""
    return f"{WORKER}{worker}:executions"


def execution(job_id: str, execution_id: str) -> str:
    """RQ's hash of one execution of a job."""
    return f"{EXECUTION}{job_id}:{execution_id}"
