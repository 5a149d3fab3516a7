"""Producers and workers with no more rights than ``ops/redis/users.acl`` gives them."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from redis import Redis
from redis.exceptions import NoPermissionError, ResponseError
from rq import Retry

from fixtures.affine import MODEL, assert_all_right, rows, submit
from fixtures.faulty import start_faulty
from fixtures.redis import RedisServer, require_redis_server
from fixtures.workers import Workers, wait_until
from fixtures.workers import workers as open_workers
from tensorq import Client, JobCancelled, JobFailed, UnknownModel, keys
from tensorq.status import Status

RULES = Path(__file__).parents[3] / "ops/redis/users.acl"
ADMIN = "user admin on >CHANGE-ME-ADMIN ~* &* +@all"


@pytest.fixture
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """A server with those users and an administrator."""
    require_redis_server()
    folder = tmp_path_factory.mktemp("r")
    rules = folder / "users.acl"
    rules.write_text(f"{RULES.read_text()}{ADMIN}\n")
    with RedisServer(folder, "--aclfile", str(rules)) as server:
        yield server


def url(server: RedisServer, role: str) -> str:
    return f"unix://tensorq-{role}@{server.socket}?password=CHANGE-ME-{role.upper()}"


@pytest.fixture
def admin(guarded: RedisServer) -> Iterator[Redis]:
    with guarded.client(username="admin", password="CHANGE-ME-ADMIN") as redis:
        yield redis


@pytest.fixture
def workers(guarded: RedisServer, admin: Redis, repository: Path, tmp_path: Path) -> Iterator[Workers]:
    with open_workers(url(guarded, "worker"), repository, tmp_path) as made:
        yield made
        refused = admin.execute_command("ACL", "LOG")
        assert not refused, [f"{log[b'username']}: {log[b'reason']} {log[b'object']}" for log in refused]


@pytest.fixture
def client(guarded: RedisServer) -> Iterator[Client]:
    with Client(url(guarded, "producer")) as client:
        yield client


def test_all_that_producers_and_workers_do_is_allowed(admin: Redis, client: Client, workers: Workers) -> None:
    worker = start_faulty(workers, "--with-scheduler", tile_s="0.02")
    assert_all_right(client, admin, submit(client, 100, (1, 3)), (1, 3))
    client.result(client.submit(MODEL, {"x": rows(1)}, job_id="mine"), 20)
    admin.delete(keys.job("mine"))
    client.result(client.submit(MODEL, {"x": rows(1)}, job_id="mine"), 20)
    client.gather(submit(client, 20, priority="high", at_front=True, ttl=60, result_ttl=90), 20)
    large = client.submit_many(MODEL, [{"x": np.full((1, 40_000), n, np.float32)} for n in range(10)])
    assert len(list(client.as_completed(large, 20))) == 10
    bad = {"index": np.array([99])}
    for options in ({}, {"retry": 1}, {"retry": Retry(max=1, interval=1)}):
        with pytest.raises(JobFailed, match="out of data bounds"):
            client.result(client.submit("gather", bad, **options), 20)
    first = client.submit(MODEL, {"x": rows(1)})
    second = client.submit(MODEL, {"x": rows(2)}, depends_on=first)
    third = client.submit(MODEL, {"x": rows(3)}, depends_on=[first, second], priority="low")
    assert len(client.gather([first, second, third], 20)) == 3
    assert [info.name for info in client.models()] == [MODEL, "gather"]
    with pytest.raises(UnknownModel):
        client.submit("nobody", {"x": rows(1)})
    assert worker.stop() == 0


def test_a_producer_may_cancel_what_waits_what_runs_and_what_others_wait_for(
    client: Client, workers: Workers
) -> None:
    worker = start_faulty(workers, tile_s="1")
    running = submit(client, 16)
    waiting = client.submit(MODEL, {"x": rows(1)})
    dependent = client.submit(MODEL, {"x": rows(1)}, depends_on=running[1])
    wait_until(lambda: client.status(running[0]) is Status.RUNNING)
    for job in (running[0], running[1], waiting, dependent):
        assert client.cancel(job)
        with pytest.raises(JobCancelled):
            client.result(job, 5)
    client.gather(running[2:], 20)
    assert worker.stop() == 0


def test_a_worker_may_take_over_from_one_that_was_killed(
    client: Client, admin: Redis, workers: Workers
) -> None:
    jobs = submit(client, 24)
    killed = start_faulty(workers, tile_s="1", name="killed")
    wait_until(lambda: admin.zcard(keys.wip(MODEL)))
    killed.process.send_signal(signal.SIGKILL)
    start_faulty(workers)
    assert_all_right(client, admin, jobs)


@pytest.mark.parametrize("role", ["producer", "worker"])
@pytest.mark.parametrize(
    "command",
    [
        "FLUSHALL",
        "KEYS *",
        "CONFIG GET requirepass",
        "ACL LIST",
        "SHUTDOWN",
        "GET another:app",
    ],
)
def test_nobody_may_do_harm_or_look_at_what_is_others(guarded: RedisServer, role: str, command: str) -> None:
    with Redis.from_url(url(guarded, role)) as redis, pytest.raises(NoPermissionError):
        redis.execute_command(*command.split())


@pytest.mark.parametrize(
    "command",
    [
        "SET tensorq:result:id forged",
        "SET tensorq:model:net {}",
        "ZADD tensorq:models 1 net",
        "XADD rq:results:id * type 1",
        "HSET rq:worker:w state idle",
    ],
)
def test_a_producer_may_not_pass_for_a_worker(guarded: RedisServer, command: str) -> None:
    with Redis.from_url(url(guarded, "producer")) as redis:
        with pytest.raises(NoPermissionError):
            redis.execute_command(*command.split())
        with pytest.raises(ResponseError, match=r"executing the script can.t access"):
            redis.eval("return redis.call(unpack(ARGV))", 0, *command.split())
