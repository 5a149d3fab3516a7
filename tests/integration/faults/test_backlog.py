"""A million queued jobs: submitting, claiming and memory do not depend on how many wait."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from redis import Redis

from fixtures import leased
from fixtures.leased import MODEL, claim, done, store
from tensorq import keys
from tensorq_worker.broker import Broker

JOBS, SLICE = 1_000_000, 50_000


def seconds(act: Callable[[], object], times: int = 20) -> float:
    """The median of several runs."""
    found = []
    for _ in range(times):
        since = time.perf_counter()
        act()
        found.append(time.perf_counter() - since)
    return sorted(found)[times // 2]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_million_queued_jobs_make_nothing_slower_or_larger(redis: Redis, other: Broker) -> None:
    def slice_of_jobs(first: int) -> tuple[float, float]:
        before, since = redis.info("memory")["used_memory"], time.perf_counter()
        store(redis, [f"job-{n}" for n in range(first, first + SLICE)])
        took_s = time.perf_counter() - since
        return took_s, (redis.info("memory")["used_memory"] - before) / SLICE

    def turn() -> None:
        leased.finish(other, done(claim(other, 64)))

    slices = [slice_of_jobs(0)]
    few_s = seconds(turn)
    slices += [slice_of_jobs(first) for first in range(SLICE, JOBS, SLICE)]
    many_s = seconds(turn)
    assert redis.llen(keys.queue(MODEL)) == JOBS - 2 * 20 * 64
    times, sizes = zip(*slices, strict=True)
    print(f"{SLICE:,} submits take {min(times):.2f} to {max(times):.2f} s")
    print(f"64 jobs claimed and finished: {1000 * few_s:.1f} ms; with a million {1000 * many_s:.1f} ms")
    half = len(slices) // 2
    assert sorted(times[half:])[half // 2] < 1.5 * sorted(times[:half])[half // 2]
    # Tables of keys double now and then: over halves that evens out.
    assert sum(sizes[half:]) < 1.2 * sum(sizes[:half])
    assert many_s < 2 * few_s
