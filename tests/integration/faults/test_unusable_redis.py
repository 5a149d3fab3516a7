"""A Redis that is busy, loading, read-only, slow or fails over: waited out; one that refuses us is told."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from redis import Redis
from redis.exceptions import RedisError

from fixtures.affine import MODEL, assert_all_right, rows, submit
from fixtures.faulty import launch_faulty, start_faulty
from fixtures.proxy import Proxy
from fixtures.redis import RedisServer, free_port, require_redis_server
from fixtures.workers import Workers, wait_until
from fixtures.workers import workers as open_workers
from tensorq import Client, RedisUnavailable, keys
from tensorq_worker import BatchWorker
from tensorq_worker.config import WorkerConfig

SECRET = "hunter2-is-secret"
LEASE_S = WorkerConfig.model_fields["lease_s"].default


def finished(redis: Redis) -> int:
    return redis.zcard(keys.FINISHED + MODEL)


@contextmanager
def busy(redis: Redis, server: RedisServer) -> Iterator[None]:
    """A script of somebody's that does not end: Redis answers BUSY to all."""
    redis.config_set("busy-reply-threshold", 20)

    def run() -> None:
        with server.client(retry=None) as other, suppress(RedisError):
            other.eval("while true do end", 0)

    thread = threading.Thread(target=run)
    thread.start()
    time.sleep(0.1)
    try:
        yield
    finally:
        with server.client(retry=None) as other:
            other.script_kill()
        thread.join()
        redis.config_set("busy-reply-threshold", 5000)


@contextmanager
def read_only(redis: Redis, server: RedisServer) -> Iterator[None]:
    """The server is a replica for a while, as an old primary is after a failover."""
    redis.replicaof("127.0.0.1", "1")
    try:
        yield
    finally:
        redis.replicaof("NO", "ONE")


@contextmanager
def no_disk(redis: Redis, server: RedisServer) -> Iterator[None]:
    """Snapshots fail, as they do where the disk is full: Redis answers MISCONF to what writes."""
    in_the_way = server.socket.with_name("dump.rdb") / "file"
    in_the_way.parent.mkdir()
    in_the_way.touch()
    redis.config_set("save", "3600 1")
    redis.bgsave()
    wait_until(lambda: redis.info("persistence")["rdb_last_bgsave_status"] == "err")
    try:
        yield
    finally:
        redis.config_set("save", "")
        shutil.rmtree(in_the_way.parent)


@pytest.mark.parametrize(
    ("trouble", "word", "advice"),
    [
        (busy, "BUSY", "refused a command"),
        (read_only, "read only replica", "connect to the primary"),
        (no_disk, "MISCONF", "refused a command"),
    ],
    ids=["BUSY", "READONLY", "MISCONF"],
)
def test_trouble_of_a_while_is_waited_out_by_workers_and_told_to_producers(
    redis: Redis, redis_server: RedisServer, client: Client, workers: Workers, trouble, word: str, advice: str
) -> None:
    jobs = submit(client, 300, (1, 3))
    worker = start_faulty(workers, tile_s="0.05")
    wait_until(lambda: finished(redis) > 20)
    with trouble(redis, redis_server):
        with pytest.raises(RedisUnavailable, match=advice):
            client.submit(MODEL, {"x": rows(1)})
        wait_until(lambda: word in worker.log)
        # Past the lease: what was held then is run again, and stored once.
        time.sleep(3.5)
    assert_all_right(client, redis, jobs, (1, 3))
    assert worker.stop() == 0


def test_a_redis_that_loads_its_data_for_long_is_waited_for(
    tmp_path_factory: pytest.TempPathFactory, repository: Path, tmp_path: Path
) -> None:
    require_redis_server()
    slow = ("--key-load-delay", "2000", "--loading-process-events-interval-bytes", "1024")
    server = RedisServer(tmp_path_factory.mktemp("r"), "--save", "3600 1", *slow)
    with server, open_workers(server.url, repository, tmp_path) as made, Client(server.url) as client:
        worker = start_faulty(made, tile_s="0.05")
        jobs = submit(client, 300)
        with server.client() as redis:
            wait_until(lambda: finished(redis) > 20)
            server.shut_down()
            server.start()
            assert "loading" in worker.log
            assert_all_right(client, redis, jobs)
            assert worker.stop() == 0


def test_a_slow_redis_slows_a_worker_down_and_costs_no_job_its_lease(
    redis: Redis, proxy: Proxy, client: Client, workers: Workers
) -> None:
    # What waits behind two tiles is held for longer than a lease lasts without a beat.
    worker = start_faulty(workers, url=proxy.url, tile_s="1.5")
    slow = proxy.delay(lambda sent: True, 0.1, times=10**9)
    jobs = submit(client, 45, (1, 3))
    assert_all_right(client, redis, jobs, (1, 3))
    assert slow.done > 30
    assert worker.stop() == 0
    assert "not ours any more" not in worker.log


def test_a_failover_to_a_replica_loses_no_job_and_stores_each_result_once(
    tmp_path_factory: pytest.TempPathFactory, repository: Path, tmp_path: Path
) -> None:
    require_redis_server()
    primary_port, replica_port = free_port(), free_port()
    bound = ("--bind", "127.0.0.1", "--port")
    primary = RedisServer(tmp_path_factory.mktemp("a"), *bound, str(primary_port))
    replica = RedisServer(
        tmp_path_factory.mktemp("b"), *bound, str(replica_port), "--replicaof", f"127.0.0.1 {primary_port}"
    )
    front = tmp_path_factory.mktemp("p") / "p.sock"
    with (
        primary,
        replica,
        Proxy(primary.socket, front) as proxy,
        replica.client() as redis,
        open_workers(proxy.url, repository, tmp_path) as made,
        Client(proxy.url) as client,
    ):
        wait_until(lambda: redis.info("replication")["master_link_status"] == "up")
        jobs = submit(client, 300, (1, 3))
        with primary.client() as old:
            assert old.wait(1, 5000) == 1
        workers = [start_faulty(made, tile_s="0.05") for _ in range(2)]
        wait_until(lambda: finished(redis) > 20)
        primary.stop()
        time.sleep(0.5)
        redis.replicaof("NO", "ONE")
        proxy.redirect(replica.socket)
        assert_all_right(client, redis, jobs, (1, 3))
        for worker in workers:
            assert worker.stop() == 0


@pytest.mark.parametrize("password", [None, "wrong-" + SECRET])
def test_a_worker_that_redis_does_not_let_in_says_so_and_ends(
    tmp_path_factory: pytest.TempPathFactory, repository: Path, tmp_path: Path, password: str | None
) -> None:
    require_redis_server()
    with RedisServer(tmp_path_factory.mktemp("r"), "--requirepass", SECRET) as server:
        url = server.url + (f"?password={password}" if password else "")
        with open_workers(url, repository, tmp_path) as made:
            worker = launch_faulty(made)
            assert worker.wait() == 69
    assert "refused the credentials; check the user name and the password" in worker.log
    assert SECRET not in worker.log
    assert "Traceback" not in worker.log


def test_an_answer_that_does_not_come_is_given_up_before_the_lease_lapses(redis_server: RedisServer) -> None:
    with redis_server.client() as redis:
        BatchWorker(["affine"], connection=redis)
        # A beat comes every 15 s, and must still be in time after that.
        assert 10 < redis.connection_pool.connection_kwargs["socket_timeout"] < LEASE_S - 15
