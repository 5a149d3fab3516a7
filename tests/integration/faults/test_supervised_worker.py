"""A worker under a supervisor: what it is told, what it must do, and which exit code means what."""

from __future__ import annotations

import json
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from redis import Redis

from fixtures.affine import MODEL, submit
from fixtures.faulty import launch_faulty, start_faulty
from fixtures.redis import RedisServer
from fixtures.workers import Workers, wait_until
from tensorq import Client, keys


@pytest.fixture
def supervisor(tmp_path_factory: pytest.TempPathFactory) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(str(tmp_path_factory.mktemp("s") / "s"))
        listener.settimeout(10)
        yield listener


def watched(workers: Workers, supervisor: socket.socket, *arguments: str, **faults: str):
    """Starts a worker whose supervisor expects a sign of life every 0.9 s."""
    env = {"NOTIFY_SOCKET": supervisor.getsockname(), "WATCHDOG_USEC": "900000"}
    workers.env |= env
    return start_faulty(workers, *arguments, **faults)


def until(supervisor: socket.socket, word: str) -> list[str]:
    messages = []
    while not messages or word not in messages[-1]:
        messages.append(supervisor.recv(4096).decode())
    return messages


def drain(supervisor: socket.socket) -> None:
    """Takes what was sent so far; reading does not wait any more."""
    supervisor.setblocking(False)
    with suppress(BlockingIOError):
        while True:
            supervisor.recv(4096)


def test_systemd_hears_of_start_life_and_stop(
    redis: Redis, client: Client, workers: Workers, supervisor: socket.socket
) -> None:
    submit(client, 24)
    worker = watched(workers, supervisor, tile_s="1")
    before = until(supervisor, "READY=1")
    assert all("EXTEND_TIMEOUT_USEC=" in message for message in before[:-1])
    assert until(supervisor, "WATCHDOG=1") == ["WATCHDOG=1"]
    wait_until(lambda: redis.zcard(keys.wip(MODEL)))
    worker.process.send_signal(signal.SIGTERM)
    until(supervisor, "STOPPING=1")
    # What was claimed is finished, and the watchdog's patience must last until then.
    assert worker.process.poll() is None
    assert until(supervisor, "WATCHDOG=1") == ["WATCHDOG=1"]
    assert worker.wait() == 0


def test_a_process_that_is_stopped_is_silent(workers: Workers, supervisor: socket.socket) -> None:
    worker = watched(workers, supervisor)
    until(supervisor, "READY=1")
    worker.process.send_signal(signal.SIGSTOP)
    time.sleep(0.5)
    drain(supervisor)
    time.sleep(1.2)
    with pytest.raises(BlockingIOError):
        supervisor.recv(4096)


def test_redis_that_is_away_is_no_reason_to_start_a_worker_again(
    proxy, workers: Workers, supervisor: socket.socket
) -> None:
    workers.env |= {"NOTIFY_SOCKET": supervisor.getsockname(), "WATCHDOG_USEC": "9000000"}
    worker = start_faulty(workers, url=proxy.url)
    until(supervisor, "READY=1")
    supervisor.settimeout(9)
    with proxy.refusing():
        for _ in range(3):
            supervisor.recv(4096)
    assert worker.stop() == 0


def test_signs_of_life_go_on_while_redis_does_not_answer(
    redis_server: RedisServer, workers: Workers, supervisor: socket.socket
) -> None:
    worker = watched(workers, supervisor)
    until(supervisor, "READY=1")
    paused = threading.Thread(target=redis_server.pause, args=(6.0,))
    paused.start()
    try:
        # By then the beat waits for its answer.
        time.sleep(2)
        drain(supervisor)
        supervisor.settimeout(3)
        assert [supervisor.recv(4096) for _ in range(2)] == [b"WATCHDOG=1"] * 2
        assert paused.is_alive()
    finally:
        paused.join()
    assert worker.stop() == 0


def test_the_health_file_follows_the_worker(
    redis: Redis, client: Client, workers: Workers, tmp_path: Path
) -> None:
    file = tmp_path / "health"
    submit(client, 40)
    worker = start_faulty(workers, "--health-file", str(file), tile_s="1")
    assert json.loads(file.read_text())["state"] == "ready"
    wait_until(lambda: json.loads(file.read_text())["held"] > 0)
    worker.process.send_signal(signal.SIGTERM)
    wait_until(lambda: json.loads(file.read_text())["state"] == "stopping")
    assert worker.wait() == 0
    assert not file.exists()


def test_a_killed_workers_health_file_grows_old(workers: Workers, tmp_path: Path) -> None:
    file = tmp_path / "health"
    worker = start_faulty(workers, "--health-file", str(file))
    worker.kill()
    assert json.loads(file.read_text())["at"] <= time.time()


def test_a_health_file_that_cannot_be_written_is_a_mistake_in_the_settings(
    workers: Workers, tmp_path: Path
) -> None:
    worker = launch_faulty(workers, "--health-file", str(tmp_path / "none" / "health"))
    assert worker.wait() == 78
    assert "health_file:" in worker.log
    assert "cannot be written" in worker.log
