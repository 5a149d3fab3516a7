"""Function jobs on a model's queue: refused, unless the worker was told to run them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from redis import Redis
from rq import Callback, Queue, SimpleWorker
from rq.job import Job, JobStatus
from rq.results import Result

from fixtures.callbacks import seen
from fixtures.rqstate import leftovers
from fixtures.servers import on_redis_and_valkey
from fixtures.workers import Workers, wait_until
from tensorq import Client, JobFailed

pytestmark = pytest.mark.integration

X = {"x": np.ones((2, 3), np.float32)}
ADD = "fixtures.callbacks.add"


def await_end(job: Job) -> None:
    wait_until(lambda: job.get_status() in (JobStatus.FINISHED, JobStatus.FAILED), what="an end")


@on_redis_and_valkey
def test_a_function_is_refused_with_what_to_do(client: Client, redis: Redis, fleet: Workers) -> None:
    queue = Queue("affine", connection=redis)
    before, function, after = client.submit("affine", X), queue.enqueue(ADD, 2, 3), client.submit("affine", X)
    fleet.start("affine")
    await_end(function)
    assert function.get_status() is JobStatus.FAILED
    text = function.latest_result().exc_string
    assert text.startswith("tensorq_worker.errors.FunctionRefused: ")
    assert "--allow-functions" in text
    assert "Traceback" not in text
    assert client.gather([before, after], timeout=10)
    assert leftovers(redis) == {}


def test_a_refused_function_is_not_unpickled(redis: Redis, fleet: Workers, tmp_path: Path) -> None:
    path = tmp_path / "sprung"
    function = Queue("affine", connection=redis).enqueue(Path.touch, path)
    fleet.start("affine")
    await_end(function)
    assert not path.exists()


@on_redis_and_valkey
def test_an_allowed_function_runs_as_in_rq(client: Client, redis: Redis, fleet: Workers) -> None:
    queue = Queue("affine", connection=redis)
    function = queue.enqueue(ADD, 2, 3, meta={"kept": 1}, on_success=Callback("fixtures.callbacks.returned"))
    bad = queue.enqueue(ADD, 2, "x", on_failure=Callback("fixtures.callbacks.failed"))
    tensor = client.submit("affine", X)
    fleet.start("affine", "--allow-functions", "--name", "w1")
    assert tensor.result(timeout=10)
    for job in (function, bad):
        await_end(job)
    assert function.return_value() == 5
    assert function.latest_result().type is Result.Type.SUCCESSFUL
    assert function.get_meta() == {"kept": 1}
    assert bad.latest_result().type is Result.Type.FAILED
    assert "Traceback" in bad.latest_result().exc_string
    assert [note["what"] for note in seen(redis)] == ["returned 5", "failed"]
    assert int(redis.hget("rq:worker:w1", "failed_job_count")) >= 1
    assert leftovers(redis) == {}


def test_an_allowed_function_without_an_import_fails_alone(
    client: Client, redis: Redis, fleet: Workers
) -> None:
    missing = Queue("affine", connection=redis).enqueue("no.such.function")
    fleet.start("affine", "--allow-functions")
    await_end(missing)
    assert missing.get_status() is JobStatus.FAILED
    assert client.submit("affine", X).result(timeout=10)


def test_a_deleted_function_does_not_end_the_worker(client: Client, redis: Redis, fleet: Workers) -> None:
    worker = fleet.start("nap", "--allow-functions")
    client.submit("nap", {"x": np.full((1, 1), 3000, np.float32)}).result(timeout=20)
    function = Queue("nap", connection=redis).enqueue("fixtures.callbacks.nothing")
    function.delete()
    assert client.submit("nap", {"x": np.zeros((1, 1), np.float32)}).result(timeout=10)
    assert worker.process.poll() is None


def test_a_stock_worker_fails_our_job_and_says_which_worker_is_needed(
    client: Client, redis: Redis, fleet: Workers
) -> None:
    job = client.submit("affine", X)
    SimpleWorker(["affine"], connection=redis).work(burst=True)
    with pytest.raises(JobFailed, match="--worker-class") as failure:
        job.result(timeout=5)
    assert failure.value.kind == "ConfigError"
    fleet.start("affine")
    fleet.rq_tool("requeue", "--queue", "affine", "--all")
    wait_until(lambda: Job.fetch(job.id, connection=redis).is_finished, what="finished")
    assert leftovers(redis) == {}
