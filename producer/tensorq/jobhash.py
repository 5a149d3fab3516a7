"""The RQ job hash of a tensorq job: RQ's fields as RQ 3.0 writes them, and ours beside them.

Ours start with ``tensorq_``; RQ neither reads nor drops them (``Job.save`` is an HSET). ``data`` is what
stock tools show and a stock worker would call: a constant pickle that is written here and never read.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Any

from rq import Callback, Retry
from rq.utils import utcformat

from tensorq.names import Priority, queue_name

MODEL = "tensorq_model"
ROWS = "tensorq_rows"
BYTES = "tensorq_bytes"
CLIENT = "tensorq_client"
AT_MS = "tensorq_at_ms"
DEADLINE_MS = "tensorq_deadline_ms"
EXECUTION = "tensorq_execution"
SUSPECT = "tensorq_suspect"
CRASHES = "tensorq_crashes"
POISON = "tensorq_poison"
# "1" where nothing was asked of the job, nor happened to it, that a claim must look up; absent otherwise.
PLAIN = "tensorq_plain"

STOCK_FUNCTION = "tensorq.stock.run"
DEFAULT_TIMEOUT_S = 180  # RQ's own Queue.DEFAULT_TIMEOUT


@dataclass(frozen=True, slots=True)
class JobOptions:
    """What a producer may ask of a job; the words are RQ's.

    Attributes:
        priority: which of the model's queues.
        timeout_s: limit of the running part; -1 for none.
        ttl_s: how long it may wait before it is dropped; None for ever.
        result_ttl_s: how long the result is kept; None for the worker's default, -1 for ever.
        failure_ttl_s: how long a failure is kept; None for RQ's default.
        deadline: absolute time after which the job is not worth running.
        retry: RQ's Retry, spent on the job's own errors.
        on_success: RQ's Callback, called in the worker with the outputs as a dict of arrays.
        on_failure: RQ's Callback, called in the worker.
        on_stopped: RQ's Callback, called in the worker.
        at_front: put it at its queue's head.
        depends_on: ids of jobs that must finish first.
        description: shown by RQ's tools; None for ``MODEL``.
    """

    priority: Priority = Priority.NORMAL
    timeout_s: int = DEFAULT_TIMEOUT_S
    ttl_s: int | None = None
    result_ttl_s: int | None = None
    failure_ttl_s: int | None = None
    deadline: datetime | None = None
    retry: Retry | None = None
    on_success: Callback | None = None
    on_failure: Callback | None = None
    on_stopped: Callback | None = None
    at_front: bool = False
    depends_on: Sequence[str] = field(default=())
    description: str | None = None

    @property
    def plain(self) -> bool:
        """Whether a claim may skip the fields that few jobs have."""
        asked = (
            self.ttl_s,
            self.result_ttl_s,
            self.deadline,
            self.on_success,
            self.on_failure,
            self.on_stopped,
        )
        return all(option is None for option in asked)


@lru_cache(maxsize=1024)
def stock_data(model: str) -> bytes:
    """The constant ``data`` of a model's jobs: RQ's (function, instance, args, kwargs), pickled."""
    return pickle.dumps((STOCK_FUNCTION, None, (model,), {}), protocol=5)


def common_fields(model: str, client_id: str, options: JobOptions, at: datetime) -> dict[str, Any]:
    """The fields that all jobs of one submission share, ours first: the worker reads those most.

    Args:
        model: the model's name.
        client_id: whose completion list is told, or empty for nobody's.
        options: what was asked.
        at: the moment of submission, UTC.
    """
    stamp = utcformat(at)
    fields: dict[str, Any] = {
        "status": "queued",
        MODEL: model,
        CLIENT: client_id,
        AT_MS: int(at.timestamp() * 1000),
        "timeout": options.timeout_s,
        **({PLAIN: 1} if options.plain else {}),
        "origin": queue_name(model, options.priority),
        "created_at": stamp,
        "enqueued_at": stamp,
        "description": options.description if options.description is not None else model,
        "data": stock_data(model),
    }
    if options.deadline is not None:
        fields[DEADLINE_MS] = int(options.deadline.timestamp() * 1000) or 1  # 0 is none
    for name, value in (
        ("ttl", options.ttl_s),
        ("result_ttl", options.result_ttl_s),
        ("failure_ttl", options.failure_ttl_s),
    ):
        if value is not None:
            fields[name] = value
    if options.retry is not None:
        fields["retries_left"] = options.retry.max
        fields["retry_intervals"] = json.dumps(options.retry.intervals)
        if options.retry.enqueue_at_front:
            fields["enqueue_at_front_on_retry"] = 1
    for kind, callback in (
        ("success", options.on_success),
        ("failure", options.on_failure),
        ("stopped", options.on_stopped),
    ):
        if callback is not None:
            fields[f"{kind}_callback_name"] = callback.name
            fields[f"{kind}_callback_timeout"] = callback.timeout
    return fields
