"""RQ's callbacks and webhooks, called in the worker."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import numpy as np
import pytest
from redis import Redis
from rq import Callback
from rq.job import Job, JobStatus
from rq.registry import FailedJobRegistry
from rq.webhook import Webhook

from fixtures.callbacks import seen
from fixtures.rqstate import leftovers
from fixtures.servers import on_redis_and_valkey
from fixtures.workers import Workers, wait_until
from tensorq import Client, JobFailed, keys

pytestmark = pytest.mark.integration

X = {"x": np.ones((2, 3), np.float32)}
BAD = {"index": np.array([99], np.int64)}
SUCCEEDED = Callback("fixtures.callbacks.succeeded")
FAILED = Callback("fixtures.callbacks.failed")
RAISES = Callback("fixtures.callbacks.raises")
LEASES = ("rq:wip:*", "rq:execution*", "rq:worker:*:executions")


@on_redis_and_valkey
def test_the_success_callback_gets_the_outputs_as_arrays(
    client: Client, redis: Redis, fleet: Workers
) -> None:
    fleet.start("affine", "--name", "w1")
    job = client.submit("affine", X, on_success=SUCCEEDED, on_failure=FAILED)
    assert job.result(timeout=10)["y"].tolist() == [[3, 3, 3]] * 2
    (note,) = seen(redis)
    assert (note["what"], note["job"]) == ("succeeded", job.id)
    assert note["outputs"] == {"y": ["ndarray", [[3, 3, 3]] * 2]}
    read = Job.fetch(job.id, connection=redis)
    assert read.get_status() is JobStatus.FINISHED
    assert read.latest_result().worker_name == "w1"
    assert int(redis.hget("rq:worker:w1", "successful_job_count")) == 1
    assert leftovers(redis) == {}


@pytest.mark.parametrize("callback", ["raises", "leaves", "missing"])
def test_a_success_callback_that_raises_fails_the_job(
    client: Client, redis: Redis, fleet: Workers, callback: str
) -> None:
    worker = fleet.start("affine")
    job = client.submit("affine", X, on_success=Callback(f"fixtures.callbacks.{callback}"), on_failure=FAILED)
    with pytest.raises(JobFailed) as failure:
        job.result(timeout=10)
    assert failure.value.kind == {"raises": "RuntimeError", "leaves": "SystemExit"}.get(
        callback, "ValueError"
    )
    assert [note["what"] for note in seen(redis)] == ["failed"]
    assert not redis.exists(keys.result(job.id))
    # The callback is the user's code: its traceback is kept.
    text = Job.fetch(job.id, connection=redis).latest_result().exc_string
    assert "Traceback" in text
    assert leftovers(redis, *LEASES) == {}
    assert worker.process.poll() is None


@on_redis_and_valkey
def test_the_failure_callback_gets_the_error(client: Client, redis: Redis, fleet: Workers) -> None:
    fleet.start("gather")
    job = client.submit("gather", BAD, on_success=SUCCEEDED, on_failure=FAILED)
    with pytest.raises(JobFailed):
        job.result(timeout=10)
    (note,) = seen(redis)
    assert (note["what"], note["job"], note["kind"]) == ("failed", job.id, "TileFailed")
    assert "idx=99" in note["text"]


@pytest.mark.parametrize("callback", ["raises", "leaves"])
def test_a_failure_callback_that_raises_is_the_reason_then(
    client: Client, redis: Redis, fleet: Workers, callback: str
) -> None:
    worker = fleet.start("gather")
    job = client.submit("gather", BAD, on_failure=Callback(f"fixtures.callbacks.{callback}"))
    with pytest.raises(JobFailed) as failure:
        job.result(timeout=10)
    assert failure.value.kind in ("RuntimeError", "SystemExit")
    assert FailedJobRegistry("gather", connection=redis).get_job_ids() == [job.id]
    assert worker.process.poll() is None


def test_a_failure_callback_runs_for_every_try_as_in_rq(client: Client, redis: Redis, fleet: Workers) -> None:
    fleet.start("gather")
    job = client.submit("gather", BAD, on_failure=FAILED, retry=2)
    with pytest.raises(JobFailed):
        job.result(timeout=10)
    assert len(seen(redis)) == 3


@pytest.fixture
def listener() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A URL, and the JSON bodies that were posted there."""
    bodies: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *args: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/", bodies
    server.shutdown()
    server.server_close()
    thread.join()


def test_webhooks_are_sent(
    client: Client, redis: Redis, fleet: Workers, listener: tuple[str, list[dict[str, Any]]]
) -> None:
    url, bodies = listener
    jobs = [client.submit("affine", X), client.submit("gather", BAD)]
    for job in jobs:
        read = Job.fetch(job.id, connection=redis)
        read.webhooks = [Webhook(url, status, method="POST") for status in ("finished", "failed")]
        read.save()
    fleet.start("affine", "gather")
    client.gather(jobs, timeout=10, return_errors=True)
    wait_until(lambda: len(bodies) == 2, what="two posts")
    assert {body["job_id"]: body["status"] for body in bodies} == {
        jobs[0].id: "finished",
        jobs[1].id: "failed",
    }
    assert leftovers(redis, *LEASES) == {}
