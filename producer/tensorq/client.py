"""The client: submit tensors to models, wait for results."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from types import TracebackType
from typing import Any, Literal, Self, Unpack, overload

import numpy as np
from redis import Redis

from tensorq import cancellation, deferral, keys, models, status, submission, wire
from tensorq.catalogue import Catalogue
from tensorq.collector import Collector
from tensorq.connection import binary_client, translated
from tensorq.errors import InputError, JobError, ResultTimeout, TensorqError, WireError
from tensorq.job import Job
from tensorq.models import ModelInfo
from tensorq.names import model_queues, validate_model_name
from tensorq.options import SubmitOptions, checked_job_id, job_options
from tensorq.outcomes import Outcome
from tensorq.status import Status
from tensorq.submission import STORED, Limits, Request, new_job_id

Tensors = Mapping[str, np.ndarray]
Outputs = dict[str, np.ndarray]


class Client:
    """Submits jobs and brings their results; threads may share it.

    Args:
        redis: a URL, or a ``redis.Redis`` configured in any way; tensorq leaves it as it is.
        limits: bounds of the queues; what is None comes from the model's publication.
        trust: do not check inputs against what workers publish; they check them again in any case.

    Raises:
        ConfigError: the URL is malformed.
        RedisUnavailable: a kind of client that cannot be used. Redis itself is not contacted yet.
    """

    def __init__(
        self,
        redis: Redis | str = "redis://localhost:6379",
        *,
        limits: Limits | None = None,
        trust: bool = False,
    ) -> None:
        self._redis = binary_client(redis)
        self._owns_redis = self._redis is not redis
        self._limits = limits if limits is not None else Limits()
        self._catalogue = Catalogue(self._redis, trust)
        self._collector = Collector(self._redis)

    def submit(
        self,
        model: str,
        tensors: Tensors | np.ndarray,
        *,
        job_id: str | None = None,
        **options: Unpack[SubmitOptions],
    ) -> Job:
        """Stores one job.

        Args:
            model: the model's name.
            tensors: an array for each input, rows along the first axis; one array for a model with one
                input. They are copied before this returns.
            job_id: an id of your own. If a job of this id is in Redis the call stores nothing and returns
                its handle.
            **options: see `SubmitOptions`.

        Raises:
            InputError: the tensors do not fit the model; nothing was stored.
            UnknownModel: no worker serves it, while others are served.
            ConfigError: an option is malformed.
            QueueFull: the queue is at its limit; nothing was stored.
            RedisUnavailable: Redis did not answer or refused.
        """
        if job_id is not None:
            checked_job_id(job_id)
        return self._submit(model, [tensors], job_id, options)[0]

    def submit_many(
        self, model: str, tensors: Iterable[Tensors | np.ndarray], **options: Unpack[SubmitOptions]
    ) -> list[Job]:
        """Stores many jobs, in few round trips.

        All are checked and packed before the first is stored; submit an endless stream in slices.

        Args:
            model: the model's name.
            tensors: what `submit` takes, for each job.
            **options: see `SubmitOptions`; shared by all.

        Raises:
            InputError: names the position of the job that does not fit; nothing was stored.
            QueueFull: ``accepted`` holds the handles of the stored jobs, ``refused`` the positions of the
                others, of which nothing was stored.
            RedisUnavailable: Redis did not answer or refused; some jobs may have been stored.
        """
        return self._submit(model, tensors, None, options)

    def result(self, job: Job | str, timeout: float | None = None) -> Outputs:
        """Waits for a job and returns its outputs, as read-only arrays.

        Args:
            job: the handle, or the id of a job that any process submitted.
            timeout: seconds to wait; None for ever, 0 to look once.

        Raises:
            JobFailed: the job failed; ``kind``, the message and ``detail`` say why.
            JobCancelled: it was cancelled or stopped.
            JobExpired: it, or its result, is not in Redis any more.
            ResultTimeout: it has not ended in time; it may still.
            RedisUnavailable: Redis did not answer or refused.
        """
        job = self._handle(job)
        outcome, job._outcome = job._outcome, None
        if outcome is None:
            with closing(self._collector.ended([job], _deadline(timeout))) as parts:
                outcome = next(parts, {}).get(job.id)
        if outcome is None:
            raise _timeout(job.id, timeout, "")
        if isinstance(outcome, JobError):
            raise outcome
        return wire.unpack(outcome)

    @overload
    def gather(
        self,
        jobs: Iterable[Job | str],
        timeout: float | None = None,
        return_errors: Literal[False] = False,
    ) -> list[Outputs]: ...
    @overload
    def gather(
        self, jobs: Iterable[Job | str], timeout: float | None = None, *, return_errors: bool
    ) -> list[Outputs | TensorqError]: ...
    def gather(
        self, jobs: Iterable[Job | str], timeout: float | None = None, return_errors: bool = False
    ) -> Any:
        """Waits for jobs and returns their outputs, in order.

        Args:
            jobs: handles or ids.
            timeout: seconds to wait for all of them together; None for ever.
            return_errors: put the error of a job without a result in its place instead of raising the
                first one seen.

        Raises:
            JobError: as `result` does, unless ``return_errors``.
            RedisUnavailable: Redis did not answer or refused.
        """
        handles = [self._handle(job) for job in jobs]
        found: dict[str, Outputs | TensorqError] = {}
        with closing(self._collector.ended(handles, _deadline(timeout))) as parts:
            for part in parts:
                for job_id, outcome in part.items():
                    found[job_id] = unpacked = _unpacked(outcome)
                    if isinstance(unpacked, TensorqError) and not return_errors:
                        raise unpacked
        missing = [job.id for job in handles if job.id not in found]
        if missing and not return_errors:
            raise _timeout(missing[0], timeout, f" ({len(missing)} of {len(handles)} jobs)")
        found |= {job_id: _timeout(job_id, timeout, "") for job_id in missing}
        return [found[job.id] for job in handles]

    def as_completed(self, jobs: Iterable[Job | str], timeout: float | None = None) -> Iterator[Job]:
        """Yields each job once, as soon as it has ended, in whichever way.

        A job's `Job.result` costs no round trip while it is the one yielded last.

        Args:
            jobs: handles or ids.
            timeout: seconds to wait for all of them together; None for ever.

        Raises:
            ResultTimeout: some have not ended in time.
            RedisUnavailable: Redis did not answer or refused.
        """
        handles = {handle.id: handle for handle in map(self._handle, jobs)}
        total = len(handles)
        with closing(self._collector.ended(list(handles.values()), _deadline(timeout))) as parts:
            for part in parts:
                for job_id, outcome in part.items():
                    job = handles.pop(job_id)
                    job._outcome = outcome
                    yield job
                    job._outcome = None
        if handles:
            raise _timeout(next(iter(handles)), timeout, f" ({len(handles)} of {total} jobs)")

    def status(self, job: Job | str) -> Status:
        """Where a job is in its life."""
        return self.statuses([job])[0]

    def statuses(self, jobs: Iterable[Job | str]) -> list[Status]:
        """Where jobs are in their lives, in order, in one round trip."""
        with translated(self._redis):
            return status.read(self._redis, [self._handle(job).id for job in jobs])

    def cancel(self, job: Job | str) -> bool:
        """Cancels a job that waits or runs, and drops its input.

        Returns:
            False where it had ended already or is not in Redis.
        """
        with translated(self._redis):
            return cancellation.cancel(self._redis, self._handle(job).id)

    def models(self) -> list[ModelInfo]:
        """The models that workers publish now, by name."""
        with translated(self._redis):
            return models.published(self._redis)

    def queue_length(self, model: str) -> int:
        """Jobs of a model that wait, on all of its queues."""
        names = model_queues(validate_model_name(model))
        with translated(self._redis), self._redis.pipeline(transaction=False) as pipe:
            for name in names:
                pipe.llen(keys.queue(name))
            return sum(pipe.execute())

    def close(self) -> None:
        """Closes the connections that this client made; one that was passed in stays open."""
        if self._owns_redis:
            self._redis.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _submit(
        self,
        model: str,
        many: Iterable[Tensors | np.ndarray],
        job_id: str | None,
        options: SubmitOptions,
    ) -> list[Job]:
        given: dict[str, Any] = dict(options)
        cast = bool(given.pop("cast", False))
        chosen = job_options(given)
        validate_model_name(model)
        with translated(self._redis):
            admission = self._catalogue.admission(model)
        requests = [
            Request(job_id if job_id is not None else new_job_id(), rows, payload)
            for rows, payload in admission.pack(many, cast)
        ]
        limits = self._limits.over(admission.limits)
        owner = self._collector.client_id
        with translated(self._redis):
            store = submission.submit if job_id is None else submission.submit_own
            if chosen.depends_on:
                store = deferral.submit
            outcomes = store(self._redis, model, requests, owner, chosen, limits)
        # A job that was known already may be another client's, whose list is told.
        jobs = [
            Job(self, request.job_id, model, owner if outcome == STORED else "")
            for request, outcome in zip(requests, outcomes, strict=True)
        ]
        submission.refuse_full(model, outcomes, jobs, limits)
        return jobs

    def _handle(self, job: Job | str) -> Job:
        if isinstance(job, Job):
            return job
        if isinstance(job, str) and job:
            return Job(self, job)
        raise InputError(f"got {job!r}, expected a Job or a job id")


def _deadline(timeout: float | None) -> float:
    return math.inf if timeout is None else time.monotonic() + timeout


def _timeout(job_id: str, timeout: float | None, more: str) -> ResultTimeout:
    return ResultTimeout(
        job_id,
        f"job {job_id}{more} has not ended within {timeout} s; wait on, or check that a worker "
        "serves its model",
    )


def _unpacked(outcome: Outcome) -> Outputs | TensorqError:
    if isinstance(outcome, JobError):
        return outcome
    try:
        return wire.unpack(outcome)
    except WireError as exc:
        return exc
