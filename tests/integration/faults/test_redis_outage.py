"""Redis goes away, comes back with or without its data, pauses, or has no memory left."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from redis import Redis
from rq import Worker

from fixtures.affine import MODEL, assert_all_right, rows, submit
from fixtures.faulty import start_faulty
from fixtures.redis import RedisServer, require_redis_server
from fixtures.workers import Workers, wait_until
from fixtures.workers import workers as open_workers
from tensorq import Client, JobFailed, RedisUnavailable, keys


@pytest.fixture
def persistent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """A server that keeps its data over a restart."""
    require_redis_server()
    with RedisServer(tmp_path_factory.mktemp("r"), "--appendonly", "yes") as server:
        yield server


@pytest.fixture
def forgetful(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """A server of this test's own that forgets everything when it stops."""
    require_redis_server()
    with RedisServer(tmp_path_factory.mktemp("r")) as server:
        yield server


def finished(redis: Redis) -> int:
    return redis.zcard(keys.FINISHED + MODEL)


def test_a_restart_with_its_data_loses_no_job_and_finishes_none_twice(
    persistent: RedisServer, repository: Path, tmp_path: Path
) -> None:
    with (
        open_workers(persistent.url, repository, tmp_path) as made,
        persistent.client() as redis,
        Client(persistent.url) as client,
    ):
        worker = start_faulty(made, tile_s="0.05")
        jobs = submit(client, 300)
        wait_until(lambda: finished(redis) > 50)
        persistent.shut_down()
        time.sleep(2)
        persistent.start()
        assert_all_right(client, redis, jobs)
        assert worker.stop() == 0


def test_a_restart_without_its_data_leaves_a_worker_that_serves_on(
    forgetful: RedisServer, repository: Path, tmp_path: Path
) -> None:
    with (
        open_workers(forgetful.url, repository, tmp_path) as made,
        forgetful.client() as redis,
        Client(forgetful.url) as client,
    ):
        worker = start_faulty(made, "--name", "survivor", tile_s="0.05")
        submit(client, 300)
        wait_until(lambda: finished(redis) > 50)
        forgetful.stop()
        time.sleep(0.5)
        forgetful.start()
        jobs = submit(client, 100)
        assert_all_right(client, redis, jobs)
        wait_until(lambda: [w.name for w in Worker.all(connection=redis)] == ["survivor"])
        wait_until(lambda: [model.name for model in client.models()] == ["affine", "gather"])
        assert worker.stop() == 0
        assert Worker.all(connection=redis) == []


def test_a_worker_can_be_stopped_while_redis_is_away(
    forgetful: RedisServer, repository: Path, tmp_path: Path
) -> None:
    with open_workers(forgetful.url, repository, tmp_path) as made, Client(forgetful.url) as client:
        worker = start_faulty(made, "--name", "w", tile_s="0.2")
        submit(client, 100)
        with forgetful.client() as redis:
            wait_until(lambda: redis.exists(keys.running("w")))
        forgetful.stop()
        worker.process.send_signal(signal.SIGTERM)
        time.sleep(1.2)
        worker.process.send_signal(signal.SIGTERM)
        assert worker.wait(60) == 0


def test_a_worker_that_holds_nothing_stops_at_the_first_signal_while_redis_is_away(
    forgetful: RedisServer, repository: Path, tmp_path: Path
) -> None:
    with open_workers(forgetful.url, repository, tmp_path) as made:
        worker = start_faulty(made)
        forgetful.stop()
        # By then its pauses are longer than those between two looks at what RQ's tools ask for.
        wait_until(lambda: "trying again in 1.6 s" in worker.log, 60)
        assert worker.stop() == 0


@pytest.mark.parametrize("pause", ["CLIENT PAUSE", "SIGSTOP"])
def test_a_pause_past_the_lease_loses_nothing(
    redis: Redis, redis_server: RedisServer, client: Client, workers: Workers, pause: str
) -> None:
    jobs = submit(client, 300)
    worker = start_faulty(workers, tile_s="0.05")
    wait_until(lambda: finished(redis) > 50)
    if pause == "SIGSTOP":
        redis_server.pause(4.0)
    else:
        redis.client_pause(4000)
    assert_all_right(client, redis, jobs)
    assert worker.stop() == 0


def test_a_backlog_that_fills_redis_drains(redis: Redis, client: Client, workers: Workers) -> None:
    # Results of this size are SET beside the script, which memory limits refuse.
    wide = [{"x": np.full((1, 30_000), n, np.float32)} for n in range(60)]
    worker = start_faulty(workers, "--name", "w", tile_s="0.2")
    jobs = client.submit_many(MODEL, wide)
    wait_until(lambda: redis.exists(keys.running("w")))
    redis.config_set("maxmemory", 1)
    try:
        with pytest.raises(RedisUnavailable, match="maxmemory"):
            client.submit(MODEL, {"x": rows(1)})
        wait_until(lambda: finished(redis) == len(jobs))
    finally:
        redis.config_set("maxmemory", 0)
    for n, result in enumerate(client.gather(jobs, 30)):
        np.testing.assert_array_equal(result["y"], 2 * wide[n]["x"] + 1)
    assert worker.stop() == 0


def test_without_memory_a_second_signal_still_hands_back(
    redis: Redis, client: Client, workers: Workers
) -> None:
    jobs = submit(client, 40)
    worker = start_faulty(workers, "--name", "w", tile_s="5")
    wait_until(lambda: redis.exists(keys.running("w")))
    redis.config_set("maxmemory", 1)
    try:
        worker.process.send_signal(signal.SIGTERM)
        time.sleep(1.1)
        assert worker.stop() == 0
        assert redis.llen(keys.queue(MODEL)) == len(jobs)
        assert redis.zcard(keys.wip(MODEL)) == 0
    finally:
        redis.config_set("maxmemory", 0)


def test_without_memory_a_failure_holds_up_no_tile(redis: Redis, client: Client, workers: Workers) -> None:
    (late,) = submit(client, 1, timeout=1)
    jobs = submit(client, 23)
    worker = start_faulty(workers, "--name", "w", "--prefetch-tiles", "3", tile_s="1.2")
    wait_until(lambda: redis.zcard(keys.wip(MODEL)) == 24)
    redis.config_set("maxmemory", 1)
    try:
        client.gather(jobs, 20)
        assert redis.zcard(keys.wip(MODEL)) == 1
    finally:
        redis.config_set("maxmemory", 0)
    with pytest.raises(JobFailed, match="timeout"):
        client.result(late, 20)
    assert worker.stop() == 0
