"""How a worker starts: its mistakes named, its exit codes, its prefixes, and RQ's own command line."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from redis import Redis
from rq import Worker
from rq.job import Job

from fixtures.callbacks import seen
from fixtures.rqstate import leftovers
from fixtures.servers import on_redis_and_valkey
from fixtures.workers import RQ, Workers, environment, wait_until
from tensorq import Client, JobFailed

pytestmark = pytest.mark.integration

X = {"x": np.ones((2, 3), np.float32)}
URL_OF_NOTHING = "redis://127.0.0.1:1/0"


def test_an_unknown_model_is_a_clear_error(fleet: Workers) -> None:
    worker = fleet.launch("affine", "afine")
    assert worker.wait() == os.EX_CONFIG
    assert "afine" in worker.log
    assert "affine" in worker.log
    assert "Traceback" not in worker.log


def test_an_unknown_model_on_rqs_command_line_is_one_too(fleet: Workers) -> None:
    worker = fleet.rq("worker", "afine")
    assert worker.wait() == os.EX_CONFIG
    assert "afine" in worker.log
    assert "Traceback" not in worker.log


@pytest.mark.parametrize("queue", ["affine@urgent", "../affine", "a b", "default:x"])
def test_a_queue_that_is_no_models_is_a_clear_error(fleet: Workers, queue: str) -> None:
    worker = fleet.rq("worker", queue)
    assert worker.wait() == os.EX_CONFIG
    assert "Traceback" not in worker.log


def test_a_missing_repository_is_a_clear_error(fleet: Workers, tmp_path: Path) -> None:
    for worker in (
        fleet.rq("worker", "affine", TENSORQ_MODELS=str(tmp_path / "none")),
        fleet.run([*RQ, "worker", "--url", fleet.url, "-w", "tensorq_worker.BatchWorker", "affine"]),
    ):
        assert worker.wait() == os.EX_CONFIG
        assert "Traceback" not in worker.log
    assert "TENSORQ_MODELS" in worker.log


def test_a_malformed_setting_is_a_clear_error(fleet: Workers) -> None:
    worker = fleet.rq("worker", "affine", TENSORQ_LEASE_S="soon")
    assert worker.wait() == os.EX_CONFIG
    assert "TENSORQ_LEASE_S" in worker.log
    assert "Traceback" not in worker.log


@pytest.mark.parametrize("value", ["99999999999999999999", "1000000001", "-2"])
def test_a_ttl_that_redis_would_refuse_is_a_clear_error(fleet: Workers, value: str) -> None:
    for worker, words in (
        (fleet.launch("affine", "--result-ttl", value), "result ttl"),
        (fleet.rq("worker", "affine", "--results-ttl", value), "result ttl"),
        (fleet.rq("worker", "affine", "--worker-ttl", value), "worker ttl"),
    ):
        assert worker.wait() == os.EX_CONFIG
        assert f"{words}: got {value}, expected seconds" in worker.log
        assert "Traceback" not in worker.log


def test_results_may_be_kept_for_ever(client: Client, redis: Redis, fleet: Workers) -> None:
    fleet.start("affine", "--result-ttl", "-1")
    job = client.submit("affine", X)
    assert job.result(timeout=10)
    assert redis.ttl(f"rq:job:{job.id}") == -1


def test_a_redis_that_is_down_is_a_clear_error(fleet: Workers) -> None:
    fleet.url = URL_OF_NOTHING
    worker = fleet.launch("affine")
    assert worker.wait() == os.EX_UNAVAILABLE
    assert "127.0.0.1:1" in worker.log
    assert "Traceback" not in worker.log


@on_redis_and_valkey
def test_rqs_own_command_line_starts_a_worker(client: Client, redis: Redis, fleet: Workers) -> None:
    worker = fleet.rq("worker", "affine@high", "--name", "w1", "--results-ttl", "33").wait_ready()
    jobs = [client.submit("affine", X, priority=level) for level in ("low", "normal", "high")]
    client.gather(jobs, timeout=10)
    assert 0 < redis.ttl(f"rq:job:{jobs[0].id}") <= 33
    (seen,) = Worker.all(connection=redis)
    assert seen.queue_names() == ["affine@high", "affine", "affine@low"]
    assert worker.stop() == 0
    assert leftovers(redis) == {}


def test_a_named_model_that_cannot_be_loaded_does_not_keep_the_others(
    client: Client, redis: Redis, fleet: Workers, repository: Path, tmp_path: Path
) -> None:
    models = tmp_path / "models"
    shutil.copytree(repository, models)
    (models / "mlp" / "model.onnx").write_bytes(b"not a model")
    fleet.models = models
    fleet.start("affine", "mlp")
    bad = Client(redis, trust=True).submit("mlp", {"x": np.ones((1, 128), np.float32)})
    good = client.submit("affine", X)
    assert good.result(timeout=10)
    (failure,) = client.gather([bad], timeout=10, return_errors=True)
    assert failure.kind == "ModelLoadFailed"


PRODUCER = """
import sys
import numpy as np
from redis import Redis
from tensorq import Client, JobFailed
with Client(sys.argv[1]) as client:
    job = client.submit("affine", {"x": np.ones((2, 3), np.float32)})
    print(job.id, job.result(timeout=20)["y"].tolist())
"""


def test_both_prefixes_are_honoured(redis: Redis, fleet: Workers) -> None:
    prefixes = {"RQ_KEY_PREFIX": "elsewhere", "TENSORQ_KEY_PREFIX": "ours"}
    fleet.start("affine", "--name", "w1", **prefixes)
    done = subprocess.run(
        [sys.executable, "-c", PRODUCER, fleet.url],
        env=environment(**prefixes),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    job_id = done.stdout.split()[0]
    assert redis.hget(f"elsewhere:job:{job_id}", "status") == b"finished"
    assert redis.exists(f"ours:result:{job_id}", f"elsewhere:results:{job_id}") == 2
    assert leftovers(redis, "rq:*", "tensorq:*") == {}
    assert {key.split(b":")[0] for key in redis.scan_iter("*")} == {b"elsewhere", b"ours"}


def test_a_hash_tag_as_prefix_works(redis: Redis, fleet: Workers) -> None:
    prefixes = {"RQ_KEY_PREFIX": "{tensorq}:rq", "TENSORQ_KEY_PREFIX": "{tensorq}"}
    fleet.start("affine", **prefixes)
    done = subprocess.run(
        [sys.executable, "-c", PRODUCER, fleet.url], env=environment(**prefixes), timeout=60, check=False
    )
    assert done.returncode == 0
    assert all(key.startswith(b"{tensorq}") for key in redis.scan_iter("*"))


def test_the_lists_of_rq_never_load_a_model(redis: Redis, fleet: Workers) -> None:
    fleet.start("affine", "--name", "w1")
    code = (
        "import sys\n"
        "from redis import Redis\n"
        "from tensorq_worker import BatchWorker\n"
        "(worker,) = BatchWorker.all(connection=Redis.from_url(sys.argv[1]))\n"
        "print(worker.name, worker.get_state(), 'onnxruntime' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, fleet.url], env=environment(), capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["w1", "idle", "False"]


def test_rqs_exception_handlers_are_called(client: Client, redis: Redis, fleet: Workers) -> None:
    fleet.rq("worker", "gather", "--exception-handler", "fixtures.callbacks.handler").wait_ready()
    job = client.submit("gather", {"index": np.array([99], np.int64)})
    wait_until(lambda: seen(redis), what="a note")
    assert seen(redis) == [{"what": "handler", "job": job.id, "kind": "TileFailed"}]


@pytest.mark.parametrize("handler", ["raises", "leaves"])
def test_an_exception_handler_that_raises_fails_its_job_alone(
    client: Client, redis: Redis, fleet: Workers, handler: str
) -> None:
    arguments = ("gather", "affine", "--exception-handler", f"fixtures.callbacks.{handler}")
    worker = fleet.rq("worker", *arguments).wait_ready()
    job = client.submit("gather", {"index": np.array([99], np.int64)}, failure_ttl=1000)
    with pytest.raises(JobFailed) as failure:
        job.result(timeout=10)
    assert failure.value.kind == "TileFailed"
    assert Job.fetch(job.id, connection=redis).failure_ttl == 1000
    assert client.submit("affine", X).result(timeout=10)
    assert worker.stop() == os.EX_OK


def test_a_job_that_rqs_maintenance_stumbles_over_keeps_no_worker_from_starting(
    client: Client, redis: Redis, fleet: Workers
) -> None:
    redis.hset("rq:job:odd", mapping={"status": "started", "created_at": "yesterday", "data": b"?"})
    redis.zadd("rq:wip:affine", {"odd:e": 1})
    worker = fleet.start("affine")
    assert client.submit("affine", X).result(timeout=10)
    assert "maintenance" in worker.log


def test_rq_can_requeue_with_our_class_named(client: Client, redis: Redis, fleet: Workers) -> None:
    job = client.submit("gather", {"index": np.array([99], np.int64)})
    fleet.start("gather")
    wait_until(lambda: Job.fetch(job.id, connection=redis).is_failed, what="failed")
    printed = fleet.rq_tool("requeue", "-w", "tensorq_worker.BatchWorker", "--queue", "gather", job.id)
    assert "Requeueing 1 jobs" in printed
