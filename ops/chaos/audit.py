"""What became of every job, as Redis has it at the end."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from ops.chaos import models
from ops.chaos.work import MODELS, REASONS, Kind, Work
from redis import Redis
from redis.exceptions import RedisError

from tensorq import keys, wire
from tensorq.errors import WireError
from tensorq.failure import job_failed
from tensorq.names import model_queues
from tensorq_worker.broker.broker import REHEARSAL_TTL_S

TRIP_JOBS = 500
_ENDED = (b"finished", b"failed")
SUCCEEDED = b"1"


@dataclass(slots=True)
class Audit:
    """Ids of jobs, and keys, with what is wrong with each; all empty after a good run."""

    lost: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    innocents_failed: list[str] = field(default_factory=list)
    two_results: list[str] = field(default_factory=list)
    poison_misjudged: list[str] = field(default_factory=list)
    retries_spent: list[str] = field(default_factory=list)
    left_over: list[str] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        return not any(getattr(self, name) for name in self.__dataclass_fields__)


@dataclass(frozen=True, slots=True)
class Found:
    """What Redis holds of one job."""

    status: bytes | None
    retries_left: bytes | None
    stream: list[Any]
    result: bytes | None


def outstanding(redis: Redis, planned: Sequence[Work]) -> list[Work]:
    """Jobs that have not ended."""
    found = []
    for first in range(0, len(planned), TRIP_JOBS):
        part = planned[first : first + TRIP_JOBS]
        pipe = redis.pipeline(transaction=False)
        for work in part:
            pipe.hget(keys.job(work.job_id), "status")
        replies = pipe.execute()
        found += [work for work, status in zip(part, replies, strict=True) if status not in _ENDED]
    return found


def audit(redis: Redis, planned: Sequence[Work]) -> Audit:
    """Looks at every job, its result by content, and at what must be gone."""
    verdict = Audit()
    for first in range(0, len(planned), TRIP_JOBS):
        part = planned[first : first + TRIP_JOBS]
        for work, found in zip(part, _read(redis, part), strict=True):
            _judge(verdict, work, found, len(planned))
    _look_for_leftovers(verdict, redis)
    return verdict


def _read(redis: Redis, part: Sequence[Work]) -> list[Found]:
    pipe = redis.pipeline(transaction=False)
    for work in part:
        pipe.hmget(keys.job(work.job_id), "status", "retries_left")
        pipe.xrange(keys.results(work.job_id))
        pipe.get(keys.result(work.job_id))
    replies = pipe.execute()
    return [
        Found(status, retries_left, stream, result)
        for (status, retries_left), stream, result in zip(
            replies[::3], replies[1::3], replies[2::3], strict=True
        )
    ]


def _judge(verdict: Audit, work: Work, found: Found, jobs: int) -> None:
    successes = sum(entry[b"type"] == SUCCEEDED for _, entry in found.stream)
    if successes > 1 or (successes and found.status == b"failed"):
        verdict.two_results.append(f"{work.job_id}: {successes} results, {found.status!r}")
    if found.status not in _ENDED:
        verdict.lost.append(f"{work.job_id}: {found.status!r} ({work.kind}, {work.model}, on {work.parent})")
    elif work.kind is not Kind.INNOCENT:
        _judge_poison(verdict, work, found)
    elif found.status == b"failed":
        verdict.innocents_failed.append(f"{work.job_id}: {_reason(work, found)[1]}")
    else:
        _judge_result(verdict, work, found, jobs)


def _judge_poison(verdict: Audit, work: Work, found: Found) -> None:
    kind, message = _reason(work, found)
    if found.status != b"failed" or kind != REASONS[work.kind]:
        verdict.poison_misjudged.append(f"{work.job_id} ({work.kind}): {found.status!r}, {message}")


def _judge_result(verdict: Audit, work: Work, found: Found, jobs: int) -> None:
    if not found.stream or found.result is None:
        verdict.lost.append(f"{work.job_id}: finished, without a result")
        return
    if int(found.retries_left or 0) != work.retries:
        verdict.retries_spent.append(f"{work.job_id}: {found.retries_left!r} of {work.retries} left")
    expected = models.expected(work, jobs)
    try:
        outputs = wire.unpack(found.result)
    except WireError as exc:
        verdict.wrong.append(f"{work.job_id}: {exc}")
        return
    if outputs.keys() != expected.keys() or not all(
        np.array_equal(outputs[name], array) and outputs[name].dtype == array.dtype
        for name, array in expected.items()
    ):
        verdict.wrong.append(f"{work.job_id}: {outputs} instead of {expected}")


def _reason(work: Work, found: Found) -> tuple[str, str]:
    failures = [entry for _, entry in found.stream if entry[b"type"] != SUCCEEDED]
    error = job_failed(work.job_id, failures[-1].get(b"exc_string") if failures else None)
    return error.kind, str(error)


def _look_for_leftovers(verdict: Audit, redis: Redis) -> None:
    for model in MODELS:
        for queue in model_queues(model):
            for key, count in (
                (keys.wip(queue), redis.zcard(keys.wip(queue))),
                (keys.queue(queue), redis.llen(keys.queue(queue))),
            ):
                if count:
                    verdict.left_over.append(f"{key}: {count} entries")
        sizes: Any = redis.hgetall(keys.inputs(model))
        said, counted = int(redis.get(keys.input_bytes(model)) or 0), sum(map(int, sizes.values()))
        if said != counted:
            verdict.left_over.append(f"{keys.input_bytes(model)}: {said}, the index sums up to {counted}")
        for job_id in sizes:
            if redis.hget(keys.job(job_id.decode()), "status") != b"failed":
                verdict.left_over.append(f"{keys.inputs(model)}: the input of {job_id.decode()}")
    indexed = {job_id for model in MODELS for job_id in redis.hkeys(keys.inputs(model))}
    for key in redis.scan_iter(keys.INPUT + "*", count=1000):
        # A worker that was killed while it warmed itself up leaves the input of its rehearsal for a while.
        brief = 0 <= redis.ttl(key) <= REHEARSAL_TTL_S
        if key.removeprefix(keys.INPUT.encode()) not in indexed and not brief:
            verdict.left_over.append(f"{key.decode()}: an input that no index has")
    verdict.left_over += [key.decode() for key in redis.scan_iter(keys.EXECUTION + "*", count=1000)]
    # A worker that is killed just before its results are moved to their place leaves them to their ttl.
    staged = redis.scan_iter(keys.STAGED + "*", count=1000)
    verdict.left_over += [key.decode() for key in staged if redis.ttl(key) < 0]


def wait_until_ended(redis: Redis, planned: Sequence[Work], limit_s: float) -> list[Work]:
    """Waits for all jobs to end, for up to ``limit_s`` seconds; returns those that have not."""
    give_up = time.monotonic() + limit_s
    waiting = list(planned)
    while waiting and time.monotonic() < give_up:
        try:
            waiting = outstanding(redis, waiting)
        except RedisError:
            continue
        finally:
            time.sleep(0.2)
    return waiting
