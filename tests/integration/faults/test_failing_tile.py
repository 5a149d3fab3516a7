"""A tile that fails is split until the job to blame stands alone; the others are finished, uncharged."""

from __future__ import annotations

import numpy as np
import pytest
from redis import Redis
from rq import Retry

from fixtures.faulty import start_faulty
from fixtures.leased import field
from fixtures.workers import Workers
from tensorq import Client, JobFailed, keys

TABLE = np.arange(20, dtype=np.float32).reshape(5, 4)


def index(*numbers: int) -> dict[str, np.ndarray]:
    return {"index": np.array(numbers, np.int64)}


@pytest.mark.parametrize("sizes", [(1,), (3, 1, 20, 8, 9)], ids=["one row each", "split jobs"])
def test_only_the_jobs_to_blame_fail(
    redis: Redis, client: Client, workers: Workers, sizes: tuple[int, ...]
) -> None:
    good = [index(*((n + k) % 5 for k in range(sizes[n % len(sizes)]))) for n in range(100)]
    inputs, bad = list(good), (0, 13, 14, 57, 99)
    for n in bad:
        numbers = good[n]["index"].copy()
        numbers[-1] = 99
        inputs[n] = {"index": numbers}
    jobs = client.submit_many("gather", inputs, retry=Retry(max=1, interval=600))
    worker = start_faulty(workers)
    fine = [n for n in range(100) if n not in bad]
    for n, result in zip(fine, client.gather([jobs[n] for n in fine], 30), strict=True):
        np.testing.assert_array_equal(result["y"], TABLE[good[n]["index"]])
    assert worker.stop() == 0
    for n in range(100):
        assert field(redis, jobs[n].id, "status") == ("scheduled" if n in bad else "finished")
        assert field(redis, jobs[n].id, "retries_left") == ("0" if n in bad else "1")
        assert redis.xlen(keys.results(jobs[n].id)) == (0 if n in bad else 1)
        assert field(redis, jobs[n].id, "tensorq_suspect") is None
    assert redis.zcard(keys.wip("gather")) == 0


def test_the_reason_is_the_engines_own(client: Client, workers: Workers) -> None:
    start_faulty(workers)
    jobs = client.submit_many("gather", [index(1), index(99), index(2)])
    with pytest.raises(JobFailed, match="out of data bounds") as failed:
        client.result(jobs[1], 20)
    assert failed.value.kind == "TileFailed"
