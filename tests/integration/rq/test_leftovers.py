"""After any mixture of jobs nothing transient is left in Redis."""

from __future__ import annotations

import numpy as np
import pytest
from redis import Redis
from rq import Callback
from rq.job import Job

from fixtures.rqstate import leftovers
from fixtures.servers import on_redis_and_valkey
from fixtures.workers import Workers, wait_until
from tensorq import Client, keys

pytestmark = pytest.mark.integration

BIG = {"x": np.ones((20, 1000), np.float32)}
SMALL = {"x": np.ones((1, 3), np.float32)}
BAD = {"index": np.array([1, 99], np.int64)}
SUCCEEDED = Callback("fixtures.callbacks.succeeded")


@on_redis_and_valkey
def test_a_mixture_of_jobs_leaves_nothing(client: Client, redis: Redis, fleet: Workers) -> None:
    fleet.start("affine", "gather", "nap", "--beat-s", "0.5")
    rng = np.random.default_rng(3)
    jobs, failing, cancelled = [], [], []
    for _ in range(40):
        rows, width = int(rng.integers(1, 70)), int(rng.integers(1, 4))
        jobs.append(client.submit("affine", {"x": rng.random((rows, width), np.float32)}))
        jobs.append(client.submit("affine", SMALL, on_success=SUCCEEDED, priority="high"))
        jobs.append(client.submit("affine", SMALL, result_ttl=-1, priority="low", ttl=60))
        jobs.append(client.submit("affine", SMALL, depends_on=jobs[-1]))
        failing.append(client.submit("gather", BAD, retry=1, failure_ttl=50))
        cancelled.append(client.submit("nap", {"x": np.full((1, 1), 20, np.float32)}))
        cancelled[-1].cancel()
    jobs += client.submit_many("affine", [BIG] * 20)
    vanishing = [client.submit("affine", SMALL, result_ttl=0) for _ in range(10)]

    outcomes = client.gather(jobs, timeout=60)
    assert [out["y"].shape for out in outcomes[-20:]] == [(20, 1000)] * 20
    client.gather([*failing, *vanishing, *cancelled], timeout=60, return_errors=True)
    # A failed job keeps its input for a requeue, as it says.
    assert {redis.exists(keys.input(job.id)) for job in failing} == {1}
    for job in failing:
        Job.fetch(job.id, connection=redis).delete()
    fleet.start("gather", "--name", "sweeper")
    wait_until(lambda: leftovers(redis) == {}, what="no leftovers")
    lasting = leftovers(redis, "tensorq:*")
    kinds = {key.split(":")[1] for key in lasting}
    assert kinds <= {"result", "models", "model", "wake", "claim", "running", "stats", "done"}
