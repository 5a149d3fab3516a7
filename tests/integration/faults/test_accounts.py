"""The accounts of stored inputs: right after any mixture of submits, ends, crashes and deletes."""

from __future__ import annotations

import random
import time
from contextlib import suppress

import numpy as np
import pytest
from redis import Redis
from rq import Queue
from rq.exceptions import NoSuchJobError
from rq.job import Job
from rq.serializers import JSONSerializer

from fixtures import leased
from fixtures.leased import MODEL, claim, done, store
from tensorq import Client, QueueFull, keys
from tensorq.jobhash import JobOptions
from tensorq.submission import FULL, STORED, Limits
from tensorq_worker.broker import Broker, Claimed


class Life:
    """Everything that may happen to jobs, at random but the same each time."""

    def __init__(self, redis: Redis, seed: int, scale: int = 1) -> None:
        self.redis = redis
        self.scale = scale
        self.limits = Limits(max_jobs=400 * scale, max_bytes=60_000 * scale)
        self.random = random.Random(seed)
        self.broker = Broker(redis, "worker-a")
        self.client = Client(redis)
        self.held: list[Claimed] = []
        self.submitted = self.stored = self.refused = 0

    def submit(self) -> None:
        count = self.random.randrange(1, 300) * self.scale
        ids = [f"job-{self.submitted + n}" for n in range(count)]
        options = JobOptions(ttl_s=self.random.choice((None, None, 1)))
        before = self.redis.llen(keys.queue(MODEL))
        outcomes = store(self.redis, ids, 8, options, self.limits)
        # Jobs that are given back may exceed the limit; jobs that are submitted may not.
        assert self.redis.llen(keys.queue(MODEL)) <= max(before, self.limits.max_jobs or 0)
        self.submitted += count
        self.stored += outcomes.count(STORED)
        self.refused += outcomes.count(FULL)

    def claim(self) -> None:
        self.held += claim(self.broker, self.random.randrange(1, 200) * self.scale)

    def finish(self) -> None:
        self.random.shuffle(self.held)
        for _ in range(self.scale):
            ending, self.held = self.held[:100], self.held[100:]
            if ending:
                leased.finish(self.broker, done(ending))

    def give_back(self) -> None:
        given, self.held = self.held[:30], self.held[30:]
        if given:
            self.broker.give_back(given)

    def crash(self) -> None:
        self.held = []
        leased.lapse(self.redis)
        self.broker.reap([MODEL], crash_cap=3, limit=10**6)

    def cancel(self) -> None:
        for job_id in leased.waiting(self.redis)[:10]:
            self.client.cancel(job_id)

    def delete(self) -> None:
        for job_id in leased.waiting(self.redis)[:20]:
            with suppress(NoSuchJobError):  # its ttl was over
                Job.fetch(job_id, connection=self.redis, serializer=JSONSerializer).delete()

    def empty(self) -> None:
        Queue(MODEL, connection=self.redis).empty()

    def sweep(self) -> None:
        self.broker.sweep(MODEL)

    def step(self) -> None:
        weights = {self.submit: 8, self.claim: 8, self.finish: 8, self.give_back: 2, self.crash: 1}
        weights |= {self.cancel: 1, self.delete: 1, self.empty: 1, self.sweep: 1}
        self.random.choices(list(weights), list(weights.values()))[0]()


def assert_accounts(redis: Redis) -> None:
    """Checks that counter, index and payloads agree, and that each payload has its job."""
    sizes = {job_id.decode(): int(size) for job_id, size in redis.hgetall(keys.inputs(MODEL)).items()}
    assert int(redis.get(keys.input_bytes(MODEL)) or 0) == sum(sizes.values())
    stored = {key.decode().removeprefix(keys.INPUT) for key in redis.scan_iter(keys.INPUT + "*", count=1000)}
    assert stored == set(sizes)
    assert all(redis.strlen(keys.input(job_id)) == size for job_id, size in sizes.items())
    assert all(redis.exists(keys.job(job_id)) for job_id in stored)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_mixture_of_lives_leaves_the_accounts_right(redis: Redis, seed: int) -> None:
    life = Life(redis, seed)
    for _ in range(150):
        life.step()
        # Never more than what is stored: what a stock tool dropped counts until a sweep.
        sizes = redis.hvals(keys.inputs(MODEL))
        assert int(redis.get(keys.input_bytes(MODEL)) or 0) == sum(map(int, sizes)) <= life.limits.max_bytes
    assert life.refused > 0
    time.sleep(1.2)  # those with a ttl lapse
    life.broker.sweep(MODEL)
    assert_accounts(redis)
    life.crash()
    while life.claim() or life.held:
        life.finish()
    life.broker.sweep(MODEL)
    assert_accounts(redis)
    assert redis.hlen(keys.inputs(MODEL)) == 0


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_after_a_million_submits_the_accounts_are_right(redis: Redis) -> None:
    life = Life(redis, 4, scale=30)
    while life.stored < 1_000_000:
        life.step()
    time.sleep(1.2)
    life.broker.sweep(MODEL)
    assert_accounts(redis)


def test_a_queue_that_stock_tools_emptied_takes_jobs_again_after_a_sweep(
    redis: Redis, broker: Broker
) -> None:
    # The counter knows nothing of stock deletes: without a sweep the queue would stay full for good.
    limits = Limits(max_bytes=10 * len(leased.packed(0)))
    with Client(redis, limits=limits, trust=True) as client:
        payload = {"x": np.zeros((1, leased.SMALL), np.float32)}
        client.submit_many(MODEL, [payload] * 10)
        Queue(MODEL, connection=redis).empty()
        with pytest.raises(QueueFull):
            client.submit(MODEL, payload)
        assert broker.sweep(MODEL) == 10
        client.submit_many(MODEL, [payload] * 10)
    assert_accounts(redis)
