"""What `Client.submit` takes by keyword, checked and turned into `JobOptions`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from numbers import Integral
from typing import Any, TypedDict

from rq import Callback, Retry
from rq.exceptions import TimeoutFormatError
from rq.job import validate_job_id
from rq.utils import parse_timeout

from tensorq.errors import ConfigError
from tensorq.job import Job
from tensorq.jobhash import JobOptions
from tensorq.names import Priority

DEFAULT = JobOptions()
# Some 30 years. Redis refuses far longer ones, halfway through a script, and so do timers and dates.
LONGEST_S = 10**9


class SubmitOptions(TypedDict, total=False):
    """Keywords of `Client.submit` and `Client.submit_many`; durations in s, to 10**9, or text such as ``2h``.

    Attributes:
        priority: which of the model's queues: high, normal or low.
        timeout: limit of the running part, default 180; -1 for none.
        ttl: how long the job may wait before it is dropped; default for ever.
        result_ttl: how long the result is kept; default the worker's; -1 for ever.
        failure_ttl: how long a failure is kept; default RQ's.
        deadline: absolute time after which the job is not worth running.
        retry: RQ's Retry, or how often to try again.
        on_success: RQ's Callback, called in the worker with the outputs.
        on_failure: RQ's Callback, called in the worker.
        on_stopped: RQ's Callback, called in the worker.
        at_front: put it at its queue's head.
        depends_on: jobs, or ids of jobs, that must finish first.
        description: shown by RQ's tools.
        cast: convert inputs to the model's dtypes where every value survives it.
    """

    priority: Priority | str
    timeout: int | str
    ttl: int | str | None
    result_ttl: int | str | None
    failure_ttl: int | str | None
    deadline: datetime | None
    retry: Retry | int | None
    on_success: Callback | None
    on_failure: Callback | None
    on_stopped: Callback | None
    at_front: bool
    depends_on: Job | str | Sequence[Job | str]
    description: str | None
    cast: bool


def job_options(options: Mapping[str, Any]) -> JobOptions:
    """Checks a submission's options.

    Args:
        options: those that were given, `SubmitOptions` without ``cast``.

    Raises:
        ConfigError: names the option, what came and what was expected.
    """
    if not options:
        return DEFAULT
    fields: dict[str, Any] = {}
    for name, value in options.items():
        if name not in _PARSERS:
            raise ConfigError(f"unknown option {name!r}: expected one of {', '.join(sorted(_PARSERS))}")
        field, parse = _PARSERS[name]
        if value is not None:
            fields[field] = parse(name, value)
    return JobOptions(**fields)


def checked_job_id(job_id: str) -> str:
    """Returns ``job_id`` if RQ would take it.

    Raises:
        ConfigError: it would not.
    """
    try:
        validate_job_id(job_id)
    except (ValueError, TypeError) as exc:
        raise ConfigError(
            f"job_id: got {job_id!r}, expected letters, digits, underscores and dashes"
        ) from exc
    return job_id


def _refuse(name: str, value: object, expected: str) -> ConfigError:
    return ConfigError(f"option {name}: got {value!r}, expected {expected}")


def _seconds(least: int, *, zero: bool, expected: str) -> Callable[[str, Any], int]:
    def parse(name: str, value: Any) -> int:
        try:
            given = isinstance(value, Integral | str) and not isinstance(value, bool)
            seconds = int(parse_timeout(value) or 0) if given else None
        except TimeoutFormatError:
            seconds = None
        if seconds is None or not least <= seconds <= LONGEST_S or (seconds == 0 and not zero):
            raise _refuse(
                name,
                value,
                f"{expected}, at most {LONGEST_S}, as an int or as text such as '90s', '10m', '2h' or '1d'",
            )
        return seconds

    return parse


def _instance(kind: type, expected: str) -> Callable[[str, Any], Any]:
    def parse(name: str, value: Any) -> Any:
        if not isinstance(value, kind):
            raise _refuse(name, value, expected)
        return value

    return parse


def _priority(name: str, value: Any) -> Priority:
    try:
        return Priority(value)
    except ValueError as exc:
        raise _refuse(name, value, "one of high, normal, low") from exc


def _deadline(name: str, value: Any) -> datetime:
    try:
        if isinstance(value, datetime):
            value.timestamp()
            return value
    except (ValueError, OverflowError, OSError):
        pass  # next to datetime.min and datetime.max
    raise _refuse(name, value, "a datetime of the years 2 to 9998, or None for no deadline")


def _text(name: str, value: Any) -> str:
    # A surrogate, such as os.fsdecode makes of a file name, is no character.
    if not isinstance(value, str) or any("\ud800" <= character <= "\udfff" for character in value):
        raise _refuse(name, value, "text that UTF-8 can encode")
    return value


def _retry(name: str, value: Any) -> Retry:
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return Retry(max=value)
    if not isinstance(value, Retry):
        raise _refuse(name, value, "an rq.Retry or a number of tries > 0")
    return value


def _dependencies(name: str, value: Any) -> tuple[str, ...]:
    given = (value,) if isinstance(value, Job | str) else value
    if not isinstance(given, Sequence) or not all(isinstance(one, Job | str) for one in given):
        raise _refuse(name, value, "a job, a job id, or a list of them")
    return tuple(checked_job_id(one.id if isinstance(one, Job) else one) for one in given)


_CALLBACK = _instance(Callback, "an rq.Callback")
_PARSERS: dict[str, tuple[str, Callable[[str, Any], Any]]] = {
    "priority": ("priority", _priority),
    "timeout": ("timeout_s", _seconds(-1, zero=False, expected="seconds > 0, or -1 for no limit")),
    "ttl": ("ttl_s", _seconds(1, zero=False, expected="seconds > 0")),
    "result_ttl": ("result_ttl_s", _seconds(-1, zero=True, expected="seconds >= 0, or -1 for ever")),
    "failure_ttl": ("failure_ttl_s", _seconds(-1, zero=True, expected="seconds >= 0, or -1 for ever")),
    "deadline": ("deadline", _deadline),
    "retry": ("retry", _retry),
    "on_success": ("on_success", _CALLBACK),
    "on_failure": ("on_failure", _CALLBACK),
    "on_stopped": ("on_stopped", _CALLBACK),
    "at_front": ("at_front", _instance(bool, "True or False")),
    "depends_on": ("depends_on", _dependencies),
    "description": ("description", _text),
}
