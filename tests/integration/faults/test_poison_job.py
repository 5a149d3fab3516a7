"""Jobs that end their worker's process, and those whose worker dies while RQ's handlers end them."""

from __future__ import annotations

import numpy as np
import pytest
from redis import Redis
from rq import Retry
from rq.registry import FailedJobRegistry

from fixtures.affine import DEADLY, MODEL, rows, submit
from fixtures.faulty import launch_faulty, start_faulty
from fixtures.leased import field
from fixtures.workers import Workers, wait_until
from tensorq import Client, JobFailed, keys
from tensorq.status import Status

CRASHED = 139


def test_a_poison_job_fails_after_three_crashes_alone_and_its_neighbours_finish(
    redis: Redis, client: Client, workers: Workers
) -> None:
    before = submit(client, 3)
    (deadly,) = client.submit_many(MODEL, [{"x": rows(DEADLY)}])
    after = submit(client, 40)
    crashes = 0
    while client.status(deadly) is not Status.FAILED:
        # What a supervisor does.
        worker = launch_faulty(workers, crash_on=str(DEADLY))
        wait_until(lambda w=worker: w.process.poll() is not None or client.status(deadly) is Status.FAILED)
        crashes += worker.process.poll() == CRASHED
    assert crashes == 4  # in company, then three times alone
    with pytest.raises(JobFailed) as failed:
        client.result(deadly, 1)
    assert failed.value.kind == "PoisonJob"
    for number, result in enumerate(client.gather([*before, *after], 20)):
        number = number if number < len(before) else number - len(before)
        np.testing.assert_array_equal(result["y"], 2 * rows(number) + 1)

    # A person's requeue starts afresh: another three crashes alone would be needed.
    assert field(redis, deadly.id, "tensorq_suspect") is None
    FailedJobRegistry(MODEL, connection=redis).requeue(deadly.id)
    wait_until(lambda: worker.process.poll() == CRASHED)
    launch_faulty(workers)
    client.result(deadly, 20)
    assert field(redis, deadly.id, "tensorq_crashes") in (None, "0")


@pytest.mark.parametrize(("point", "retries_left"), [("in-slow-path", "1"), ("after-slow-path", "1")])
def test_a_failure_is_stored_once_though_the_worker_is_killed_over_it(
    redis: Redis, client: Client, workers: Workers, point: str, retries_left: str
) -> None:
    (bad,) = client.submit_many(
        "gather", [{"index": np.array([99], np.int64)}], retry=Retry(max=2, interval=600)
    )
    killed = launch_faulty(workers, kill_at=point)
    assert killed.wait() == -9
    second = start_faulty(workers)
    wait_until(lambda: field(redis, bad.id, "status") == "scheduled")
    assert field(redis, bad.id, "retries_left") == retries_left
    assert redis.zcard("rq:scheduled:gather") == 1
    assert redis.zcard(keys.wip("gather")) == 0
    assert second.stop() == 0
