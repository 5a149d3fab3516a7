"""Signals: a paused worker's late results are refused, a stopped one leaves nothing behind."""

from __future__ import annotations

import signal
import time

import pytest
from redis import Redis

from fixtures.affine import MODEL, assert_all_right, submit
from fixtures.faulty import start_faulty
from fixtures.leased import field
from fixtures.workers import Workers, wait_until
from tensorq import Client, keys


def launched(redis: Redis, worker: str) -> bool:
    return redis.exists(keys.running(worker)) == 1


def leased(redis: Redis) -> int:
    return redis.zcard(keys.wip(MODEL))


def test_a_worker_paused_past_its_lease_stores_nothing_late(
    redis: Redis, client: Client, workers: Workers
) -> None:
    jobs = submit(client, 24)
    paused = start_faulty(workers, "--name", "paused", tile_s="0.5")
    wait_until(lambda: launched(redis, "paused"))
    paused.process.send_signal(signal.SIGSTOP)
    start_faulty(workers, "--name", "other")
    assert_all_right(client, redis, jobs)
    paused.process.send_signal(signal.SIGCONT)
    # The beat may notice before the finish is refused.
    wait_until(lambda: "not ours any more" in paused.log)
    assert paused.stop() == 0
    assert_all_right(client, redis, jobs)
    assert int(redis.hget(keys.stats(MODEL), "jobs")) == len(jobs)


def test_a_worker_paused_past_its_lease_that_nobody_reaped_goes_on(
    redis: Redis, client: Client, workers: Workers
) -> None:
    jobs = submit(client, 24)
    paused = start_faulty(workers, "--name", "paused", tile_s="0.3")
    wait_until(lambda: launched(redis, "paused"))
    paused.process.send_signal(signal.SIGSTOP)
    time.sleep(4.5)
    paused.process.send_signal(signal.SIGCONT)
    assert_all_right(client, redis, jobs, timeout=20)
    assert {field(redis, job.id, "tensorq_suspect") for job in jobs} == {None}
    assert paused.stop() == 0


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT])
def test_the_first_signal_lets_what_was_claimed_finish(
    redis: Redis, client: Client, workers: Workers, sig: signal.Signals
) -> None:
    jobs = submit(client, 60)
    worker = start_faulty(workers, "--name", "w", tile_s="0.2")
    wait_until(lambda: launched(redis, "w"))
    assert worker.stop(sig) == 0
    assert leased(redis) == 0
    queued = redis.llen(keys.queue(MODEL))
    finished = sum(field(redis, job.id, "status") == "finished" for job in jobs)
    assert 16 <= finished == len(jobs) - queued
    start_faulty(workers)
    assert_all_right(client, redis, jobs)


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_hands_the_rest_back_uncharged_and_in_order(
    redis: Redis, client: Client, workers: Workers, sig: signal.Signals
) -> None:
    jobs = submit(client, 40)
    worker = start_faulty(workers, "--name", "w", tile_s="5")
    wait_until(lambda: launched(redis, "w"))
    worker.process.send_signal(sig)
    time.sleep(0.1)
    worker.process.send_signal(sig)  # as RQ's worker pool does: it does not count
    time.sleep(1.1)
    asked = time.monotonic()
    assert worker.stop(sig) == 0
    assert time.monotonic() - asked < 3.5
    assert leased(redis) == 0
    assert [job_id.decode() for job_id in redis.lrange(keys.queue(MODEL), 0, -1)] == [job.id for job in jobs]
    assert {field(redis, job.id, "tensorq_suspect") for job in jobs} == {None}
    start_faulty(workers)
    assert_all_right(client, redis, jobs)
