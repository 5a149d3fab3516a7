"""Errors of the worker: what its jobs fail with, and what ends it."""

from __future__ import annotations

from tensorq.errors import TensorqError


class WorkerError(TensorqError):
    """Root of the worker's own errors."""


class DeadlineExceeded(WorkerError):
    """The job's deadline, or its timeout, passed before it had a result."""


class PoisonJob(WorkerError):
    """The job was running alone each of the last times its worker process died; it is not tried again."""


class NotFinite(WorkerError):
    """The job's result holds NaN or infinity, and its model's settings ask for finite numbers."""


class FunctionRefused(WorkerError):
    """The job is a function call, which a tensorq worker does not run unless told to."""


class LeaseLost(WorkerError):
    """The job is not this worker's any more: nothing of it may be written."""


class EagerLoadFailed(WorkerError):
    """A model with ``load = "eager"`` cannot be loaded: the worker does not start without it."""


class WorkerFault(WorkerError):
    """The process must end and be started again: the engine or the device is beyond repair."""


def one_line(words: object) -> str:
    """Returns text as one printable line: what others wrote must not move the terminal's cursor."""
    lines = [line.strip() for line in str(words).splitlines()]
    return "".join(char if char.isprintable() else "?" for char in " | ".join(filter(None, lines)))
