"""Every error that tensorq raises on purpose, in one tree under `TensorqError`.

Errors of redis-py, msgpack and numpy are translated where they surface, with `from exc`, so a caller
needs no other package's exceptions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class TensorqError(Exception):
    """Root of all errors that tensorq raises on purpose; they may be pickled, as process pools do.

    Not one with handles of jobs, which belong to their client: a `QueueFull` that accepted some.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        # By itself it would be made anew from its message alone, which not all take.
        return _restored, (type(self), self.args, self.__dict__)


def _restored(kind: type[TensorqError], args: tuple[Any, ...], attributes: dict[str, Any]) -> TensorqError:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(attributes)
    return error


class ConfigError(TensorqError):
    """A setting is malformed; the message names where it came from and what it must be."""


class RedisUnavailable(TensorqError, ConnectionError):
    """Redis did not answer, refused the connection, or is of a kind that tensorq cannot use."""


class WireError(TensorqError, ValueError):
    """Bytes that are not a payload: truncated, tampered with, over a limit, or of another format."""


class InputError(TensorqError, ValueError):
    """Tensors that do not fit the model's signature; names the field, what came and what was expected."""


class UnknownModel(InputError):
    """No worker has published a model of this name, or the name is not a model name at all."""


class QueueFull(TensorqError):
    """A queue is at its limit of jobs or of stored bytes; nothing of the refused jobs was stored.

    Attributes:
        accepted: handles of the jobs of the same call that were stored before the limit was met.
        refused: positions, in the call's order, of the jobs that were not stored.
    """

    def __init__(self, message: str, accepted: Sequence[Any] = (), refused: Sequence[int] = ()) -> None:
        super().__init__(message)
        self.accepted = list(accepted)
        self.refused = list(refused)


class JobError(TensorqError):
    """A job has no result to give; the subclass says why.

    Attributes:
        job_id: the RQ job id.
    """

    def __init__(self, job_id: str, message: str) -> None:
        super().__init__(message)
        self.job_id = job_id


class JobFailed(JobError):
    """The job ran, or was refused by the worker, and failed.

    Attributes:
        kind: class name of the worker's error, such as ``WireError``; empty when it cannot be told.
        detail: the worker's whole text, as RQ's failed registry shows it.
    """

    def __init__(self, job_id: str, message: str, kind: str = "", detail: str = "") -> None:
        super().__init__(job_id, message)
        self.kind = kind
        self.detail = detail


class JobCancelled(JobError):
    """The job was cancelled or stopped before it had a result."""


class JobExpired(JobError):
    """The job is gone: it outlived its ttl or result_ttl, or was deleted, or never existed."""


class ResultTimeout(JobError, TimeoutError):
    """The job has no result yet; it may still get one."""
