"""A producer that never asks for its results: what is kept for it is bounded, and goes by itself."""

from __future__ import annotations

import pytest
from redis import Redis

from fixtures import leased
from fixtures.leased import LARGE, MODEL, SMALL, claim, done, store
from tensorq import keys
from tensorq_worker.broker import Broker

IDS = [f"job-{n}" for n in range(60)]


@pytest.mark.parametrize("elements", [SMALL, LARGE])
def test_what_nobody_reads_is_bounded_and_lapses(
    redis: Redis, other: Broker, monkeypatch: pytest.MonkeyPatch, elements: int
) -> None:
    monkeypatch.setattr(keys, "DONE_LIMIT", 25)
    store(redis, IDS, elements, client="nobody")
    for _ in range(3):
        leased.finish(other, done(claim(other, 20), elements))
    told = [job_id.decode() for job_id in redis.lrange(keys.done("nobody"), 0, -1)]
    assert told == IDS[-25:]
    assert 0 < redis.ttl(keys.done("nobody")) <= 3600
    for job_id in IDS:
        for key in (keys.result(job_id), keys.job(job_id), keys.results(job_id)):
            assert 0 < redis.ttl(key) <= 500
    assert [key for key in redis.scan_iter("*") if redis.ttl(key) < 0 and b"job-" in key] == []
    assert all(score > 0 for _, score in redis.zrange(keys.FINISHED + MODEL, 0, -1, withscores=True))
