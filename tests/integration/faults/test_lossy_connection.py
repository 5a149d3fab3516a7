"""Connections that break all the time, at random: each job has one result, the right one."""

from __future__ import annotations

import random
import time

import pytest
from redis import Redis

from fixtures.affine import assert_all_right, submit
from fixtures.faulty import start_faulty
from fixtures.proxy import Command, Proxy, calls
from fixtures.workers import Workers, wait_until
from tensorq import Client, keys
from tensorq.submission import SUBMIT
from tensorq_worker.broker.broker import CLAIM

COUNTS = (1, 1, 3, 1, 12)


class Seldom:
    """Matches one in ``one_in`` of the commands that touch jobs, at random but the same each time."""

    def __init__(self, seed: int, one_in: int) -> None:
        self._random = random.Random(seed)
        self._one_in = one_in

    def __call__(self, sent: Command) -> bool:
        ours = sent.name in ("EVALSHA", "EVAL", "EXEC", "MGET", "SET") and not calls(SUBMIT)(sent)
        return ours and self._random.randrange(self._one_in) == 0


@pytest.mark.parametrize("seed", [1, 2])
def test_each_job_has_one_result(
    redis: Redis, proxy: Proxy, client: Client, workers: Workers, seed: int
) -> None:
    worker = start_faulty(workers, url=proxy.url)
    replies = proxy.lose_reply(Seldom(seed, 40), times=10**9)
    requests = proxy.lose_request(Seldom(seed + 100, 100), times=10**9)
    submits = [proxy.lose_reply(calls(SUBMIT), nth=3, times=2), proxy.lose_request(calls(SUBMIT), nth=9)]
    # A client made from a URL does not try again by itself; the worker's is one.
    with proxy.client() as connection, Client(connection) as unlucky:
        jobs = submit(unlucky, 2500, COUNTS)
    assert_all_right(client, redis, jobs, COUNTS, timeout=60)
    assert (replies.done > 20, requests.done > 10) == (True, True)
    assert [rule.done for rule in submits] == [2, 1]
    assert worker.stop() == 0
    assert int(redis.hget(keys.stats("affine"), "jobs")) == len(jobs)


def test_a_worker_waits_out_a_redis_that_refuses_connections(
    redis: Redis, proxy: Proxy, client: Client, workers: Workers
) -> None:
    worker = start_faulty(workers, url=proxy.url, tile_s="0.02")
    jobs = submit(client, 200)
    for _ in range(3):
        time.sleep(0.2)
        with proxy.refusing():
            time.sleep(0.5)
    assert_all_right(client, redis, jobs)
    assert worker.stop() == 0


def test_a_batch_whose_claim_was_not_answered_is_finished_before_a_warm_stop(
    redis: Redis, proxy: Proxy, client: Client, workers: Workers
) -> None:
    worker = start_faulty(workers, url=proxy.url)
    unanswered = proxy.lose_reply(calls(CLAIM), times=4)
    jobs = submit(client, 5)
    wait_until(lambda: redis.zcard(keys.wip("affine")) == 5)
    assert worker.stop() == 0
    assert unanswered.done == 4
    assert_all_right(client, redis, jobs)
