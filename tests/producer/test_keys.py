import inspect
import os
import re
import subprocess
import sys
from collections.abc import Callable

import pytest
from rq import Queue
from rq.executions import Execution
from rq.job import Job
from rq.registry import FailedJobRegistry, FinishedJobRegistry, StartedJobRegistry
from rq.results import Result

from tensorq import keys

FUNCTIONS = [
    function
    for name, function in inspect.getmembers(keys, inspect.isfunction)
    if function.__module__ == keys.__name__ and not name.startswith("_")
]
PLACEHOLDERS = {
    "job_id": "ID",
    "execution_id": "EXECUTION",
    "model": "MODEL",
    "client_id": "CLIENT",
    "worker": "WORKER",
}


def documented() -> set[str]:
    cells = re.findall(r"^\| (\S.*?) \|", keys.__doc__ or "", re.MULTILINE)
    return {key for cell in cells if cell != "key" for key in cell.split(", ")}


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_each_function_makes_a_key_of_the_table(function: Callable[..., str]) -> None:
    assert function(*_arguments(function)) in documented()


def test_the_table_lists_no_other_keys() -> None:
    made = {function(*_arguments(function)) for function in FUNCTIONS}
    constant = {keys.QUEUES, keys.MODELS, keys.WAKE, f"{keys.FINISHED}QUEUE", f"{keys.EXECUTIONS}ID"}
    # RQ's own code fails jobs; the module needs no name for its registry.
    assert documented() - made == constant | {f"{keys.RQ}:failed:QUEUE"}


def _arguments(function: Callable[..., str]) -> list[str]:
    own = {"name": "MODEL" if function is keys.model else "QUEUE"}
    return [{**PLACEHOLDERS, **own}[name] for name in inspect.signature(function).parameters]


def test_rqs_keys_are_the_ones_that_rq_uses() -> None:
    connection = object()
    assert Queue.redis_queues_keys == keys.QUEUES
    assert keys.queue("q") == Queue("q", connection=connection).key  # type: ignore[arg-type]
    assert keys.job("j") == Job.key_for("j")
    assert keys.results("j") == Result.get_key("j")
    assert keys.wip("q") == StartedJobRegistry("q", connection=connection).key  # type: ignore[arg-type]
    assert FinishedJobRegistry("q", connection=connection).key == keys.FINISHED + "q"  # type: ignore[arg-type]
    assert keys.wip("q").replace(":wip:", ":failed:") == FailedJobRegistry("q", connection=connection).key  # type: ignore[arg-type]
    execution = Execution("e", "j", connection=connection)  # type: ignore[arg-type]
    assert keys.execution("j", "e") == execution.key


def run(**environment: str) -> subprocess.CompletedProcess[str]:
    code = "from tensorq import keys; print(keys.job('a'), keys.input('a'), keys.QUEUES)"
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_both_prefixes_are_honoured() -> None:
    done = run(RQ_KEY_PREFIX="{t}rq", TENSORQ_KEY_PREFIX="{t}tq")
    assert done.stdout.split() == ["{t}rq:job:a", "{t}tq:input:a", "{t}rq:queues"]


def test_a_prefix_of_other_characters_is_refused() -> None:
    done = run(TENSORQ_KEY_PREFIX="a b*")
    assert "Invalid TENSORQ_KEY_PREFIX 'a b*'" in done.stderr
