"""A thousand models on one worker: each is served, and an idle one costs the others little."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest
from redis import Redis

from fixtures.affine import rows
from fixtures.redis import RedisServer
from fixtures.workers import workers
from models import catalogue
from tensorq import Client, Job, keys
from tensorq_worker.broker import Broker, Want

COUNT = 1000


NAMES = [f"model-{n:04}" for n in range(COUNT)]
PRIORITIES = ("high", "normal", "low")


def submit_to_each(client: Client) -> list[Job]:
    return [client.submit(name, {"x": rows(n)}, priority=PRIORITIES[n % 3]) for n, name in enumerate(NAMES)]


def test_one_claim_serves_a_thousand_models_queues(redis: Redis, other: Broker) -> None:
    wants = [Want(name, 4, 8) for name in NAMES]
    with Client(redis, trust=True) as client:
        jobs = submit_to_each(client)
    claimed = other.claim(wants)
    assert [job.job_id for job in claimed] == [job.id for job in jobs]
    since = time.monotonic()
    assert other.claim(wants) == []
    # Redis answers nobody else meanwhile.
    assert time.monotonic() - since < 0.2
    other.give_back(claimed)
    assert other.beat(other.claim(wants), 60)[1] == []


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_thousand_models_are_served(
    redis: Redis, redis_server: RedisServer, client: Client, tmp_path: Path
) -> None:
    model = catalogue.affine()
    repository = catalogue.write_repository(tmp_path / "models", dict.fromkeys(NAMES, (model, None)))
    jobs = submit_to_each(client)
    with workers(redis_server.url, repository, tmp_path) as made:
        started = time.monotonic()
        worker = made.start("--lazy")
        print(f"ready after {time.monotonic() - started:.1f} s")
        for n, result in enumerate(client.gather(jobs, 120)):
            np.testing.assert_array_equal(result["y"], 2 * rows(n) + 1)
        print(f"all done after {time.monotonic() - started:.1f} s")
        assert len(client.models()) == COUNT
        late = []
        for n in range(50):
            since = time.monotonic()
            client.result(client.submit(NAMES[n], {"x": rows(n)}), 30)
            late.append(time.monotonic() - since)
        print(f"a job of one of them takes {1000 * sorted(late)[25]:.0f} ms, at most {1000 * max(late):.0f}")
        assert worker.stop() == 0
    assert redis.zcard(keys.MODELS) == COUNT
