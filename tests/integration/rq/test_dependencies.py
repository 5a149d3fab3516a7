"""RQ's depends_on between tensorq jobs."""

from __future__ import annotations

import numpy as np
import pytest
from redis import Redis
from rq import Queue
from rq.job import Dependency, Job, JobStatus
from rq.registry import DeferredJobRegistry

from fixtures.rqstate import leftovers
from fixtures.servers import on_redis_and_valkey
from fixtures.workers import Workers, wait_until
from tensorq import Client, JobFailed, keys

pytestmark = pytest.mark.integration

X = {"x": np.ones((2, 3), np.float32)}
LONG = {"x": np.full((1, 1), 6000, np.float32)}
BAD = {"index": np.array([99], np.int64)}


def status(redis: Redis, job_id: str) -> JobStatus:
    return Job.fetch(job_id, connection=redis).get_status()


@on_redis_and_valkey
def test_a_dependent_runs_after_its_parent(client: Client, redis: Redis, fleet: Workers) -> None:
    parent = client.submit("affine", X)
    child = client.submit("mlp", {"x": np.ones((1, 128), np.float32)}, depends_on=parent)
    assert DeferredJobRegistry("mlp", connection=redis).get_job_ids() == [child.id]
    fleet.start("affine", "mlp")
    assert child.result(timeout=15)["y"].shape == (1, 16)
    ends = [Job.fetch(job.id, connection=redis) for job in (parent, child)]
    assert ends[0].ended_at <= ends[1].started_at
    assert DeferredJobRegistry("mlp", connection=redis).count == 0
    assert leftovers(redis) == {}


@on_redis_and_valkey
def test_a_dependent_added_while_the_parent_runs_is_queued_when_it_ends(
    client: Client, redis: Redis, fleet: Workers
) -> None:
    fleet.start("nap", "affine")
    parent = client.submit("nap", LONG)
    wait_until(lambda: status(redis, parent.id) is JobStatus.STARTED, what="started")
    child = client.submit("affine", X, depends_on=parent)
    assert status(redis, child.id) is JobStatus.DEFERRED
    assert child.result(timeout=20)
    assert parent.result(timeout=5)
    assert leftovers(redis) == {}


def test_a_dependent_of_a_finished_parent_is_queued_at_once(
    client: Client, redis: Redis, fleet: Workers
) -> None:
    fleet.start("affine")
    parent = client.submit("affine", X)
    parent.result(timeout=10)
    assert client.submit("affine", X, depends_on=parent).result(timeout=10)


def test_a_dependent_waits_for_all_its_parents(client: Client, redis: Redis, fleet: Workers) -> None:
    fleet.start("affine", "patient")
    parents = [client.submit("affine", X), client.submit("patient", X)]
    child = client.submit("affine", X, depends_on=parents)
    parents[0].result(timeout=10)
    assert status(redis, child.id) is JobStatus.DEFERRED
    client.submit_many("patient", [X] * 15)
    assert child.result(timeout=10)


def test_a_dependent_of_a_failed_parent_stays_deferred(client: Client, redis: Redis, fleet: Workers) -> None:
    fleet.start("gather", "affine")
    parent = client.submit("gather", BAD)
    child = client.submit("affine", X, depends_on=parent)
    with pytest.raises(JobFailed):
        parent.result(timeout=10)
    client.submit("affine", X).result(timeout=10)
    assert status(redis, child.id) is JobStatus.DEFERRED


def test_allow_failure_lets_the_dependent_run(client: Client, redis: Redis, fleet: Workers) -> None:
    parent = client.submit("gather", BAD)
    # The client has no word for it: RQ's own job, with the dependency it takes.
    child = client.submit("affine", X, depends_on=parent)
    read = Job.fetch(child.id, connection=redis)
    read.process_dependencies(Dependency([parent.id], allow_failure=True))
    read.save()
    fleet.start("gather", "affine")
    assert child.result(timeout=10)


def test_a_function_job_may_depend_on_a_tensorq_job(client: Client, redis: Redis, fleet: Workers) -> None:
    parent = client.submit("affine", X)
    queue = Queue("functions", connection=redis)
    child = queue.enqueue("fixtures.callbacks.add", 2, 3, depends_on=parent.id)
    assert child.get_status() is JobStatus.DEFERRED
    fleet.launch("affine", "--burst").wait()
    assert child.get_status() is JobStatus.QUEUED
    assert queue.job_ids == [child.id]


def test_a_dependent_of_a_parent_with_result_ttl_0_runs(client: Client, redis: Redis, fleet: Workers) -> None:
    parent = client.submit("affine", X, result_ttl=0)
    child = client.submit("affine", X, depends_on=parent)
    fleet.start("affine")
    assert child.result(timeout=10)
    assert list(redis.scan_iter(f"*{parent.id}*")) == []


def test_a_deferred_job_keeps_its_input_until_it_has_run(
    client: Client, redis: Redis, fleet: Workers
) -> None:
    parent = client.submit("patient", X)
    child = client.submit("affine", X, depends_on=parent, ttl=30)
    assert redis.ttl(keys.input(child.id)) > 600
    worker = fleet.start("patient", "affine")
    wait_until(lambda: status(redis, parent.id) is JobStatus.STARTED, what="started")
    worker.stop()
    # The stop finished the parent; the child waits for the next worker.
    assert status(redis, child.id) is JobStatus.QUEUED
    fleet.start("affine")
    assert child.result(timeout=10)
    assert leftovers(redis) == {}
