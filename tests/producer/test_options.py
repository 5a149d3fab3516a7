from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from rq import Callback, Retry

from tensorq import ConfigError, Priority
from tensorq.options import checked_job_id, job_options


def test_nothing_given_is_the_defaults() -> None:
    options = job_options({})
    assert (options.priority, options.timeout_s, options.ttl_s, options.retry) == (
        Priority.NORMAL,
        180,
        None,
        None,
    )


def test_all_options_arrive_in_their_units() -> None:
    callback, when = Callback("m.f"), datetime(2030, 1, 1, tzinfo=UTC)
    options = job_options(
        {
            "priority": "high",
            "timeout": "2m",
            "ttl": 60,
            "result_ttl": "1h",
            "failure_ttl": "1d",
            "deadline": when,
            "retry": 3,
            "on_success": callback,
            "on_failure": callback,
            "on_stopped": callback,
            "at_front": True,
            "depends_on": "a-1",
            "description": "nightly",
        }
    )
    assert (options.priority, options.timeout_s, options.ttl_s) == (Priority.HIGH, 120, 60)
    assert (options.result_ttl_s, options.failure_ttl_s, options.deadline) == (3600, 86400, when)
    assert options.retry is not None
    assert options.retry.max == 3
    assert options.on_success is options.on_failure is options.on_stopped is callback
    assert (options.at_front, options.depends_on, options.description) == (True, ("a-1",), "nightly")


def test_none_is_the_default_too() -> None:
    assert job_options({"ttl": None, "retry": None, "timeout": None}) == job_options({})


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("priority", "urgent", "one of high, normal, low"),
        ("timeout", 0, "seconds > 0, or -1"),
        ("timeout", -2, "seconds > 0, or -1"),
        ("timeout", 1.5, "as an int or as text"),
        ("timeout", True, "as an int or as text"),
        ("timeout", "soon", "as an int or as text"),
        ("timeout", "", "as an int or as text"),
        ("timeout", [1], "as an int or as text"),
        ("ttl", 0, "seconds > 0"),
        ("ttl", -1, "seconds > 0"),
        ("result_ttl", -2, "seconds >= 0"),
        ("failure_ttl", -2, "seconds >= 0"),
        ("timeout", np.float32("inf"), "as an int or as text"),
        ("timeout", np.float32(1.5), "as an int or as text"),
        ("timeout", 10**9 + 1, "at most 1000000000"),
        ("ttl", 10**17, "at most 1000000000"),
        ("result_ttl", "999999999h", "at most 1000000000"),
        ("failure_ttl", 10**30, "at most 1000000000"),
        ("deadline", 5, "a datetime"),
        ("deadline", datetime.min, "a datetime of the years 2 to 9998"),
        ("retry", 0, "number of tries > 0"),
        ("retry", True, "number of tries > 0"),
        ("retry", "3", "number of tries > 0"),
        ("on_success", print, "an rq.Callback"),
        ("at_front", 1, "True or False"),
        ("depends_on", 7, "a job, a job id"),
        ("depends_on", ["a", 7], "a job, a job id"),
        ("depends_on", ["a b"], "letters, digits, underscores and dashes"),
        ("description", 7, "text"),
        ("description", "scan \udcff.png", "text that UTF-8 can encode"),
    ],
)
def test_a_malformed_option_is_named_with_what_was_expected(name: str, value: Any, expected: str) -> None:
    with pytest.raises(ConfigError) as caught:
        job_options({name: value})
    assert name in str(caught.value) or "job_id" in str(caught.value)
    assert expected in str(caught.value)


def test_an_unknown_option_lists_the_known() -> None:
    with pytest.raises(ConfigError, match=r"unknown option 'prio': expected one of at_front, .*priority"):
        job_options({"prio": "high"})


def test_rqs_retry_is_taken_as_it_is() -> None:
    retry = Retry(max=2, interval=[1, 2])
    assert job_options({"retry": retry}).retry is retry


@pytest.mark.parametrize("job_id", ["", "a b", "a:b", "é", "a\n", 7, None])
def test_job_ids_are_rqs(job_id: str) -> None:
    with pytest.raises(ConfigError, match="job_id: got"):
        checked_job_id(job_id)
