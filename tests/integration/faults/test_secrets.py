"""Passwords of the Redis URL: nowhere in logs, errors, Redis or the list of processes; workers over TLS."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from redis import Redis

from fixtures.affine import MODEL, assert_all_right, rows, submit
from fixtures.redis import RedisServer
from fixtures.tls import self_signed, tls_server
from fixtures.workers import TENSORQ, WorkerProcess, Workers, environment, wait_until
from fixtures.workers import workers as open_workers
from tensorq import Client, RedisUnavailable, keys

SECRET = "hunter2-is-secret"


@pytest.fixture
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A self-signed certificate of localhost, with its key beside it."""
    return self_signed(tmp_path_factory.mktemp("tls"))[0]


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory, certificate: Path) -> Iterator[tuple[RedisServer, int]]:
    """A server that wants a password, and TLS on its port."""
    key, folder = certificate.with_name("key.pem"), tmp_path_factory.mktemp("r")
    with tls_server(folder, certificate, key, "--requirepass", SECRET) as found:
        yield found


def launch(workers: Workers, url: str, *arguments: str) -> WorkerProcess:
    """Starts a worker that finds its Redis in the environment."""
    options = ("--models", str(workers.models), "--threads", "1", "--lease-s", "3", "--beat-s", "1")
    return workers.run((*TENSORQ, *options, *arguments), TENSORQ_REDIS=url)


def command_lines(pid: int) -> bytes:
    """What ``ps`` shows of a process and all that it started."""
    found = b""
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and (os.getsid(int(entry.name)) == pid or int(entry.name) == pid):
                found += (entry / "cmdline").read_bytes()
        except OSError:
            continue
    return found


def everything(redis: Redis) -> bytes:
    """All that Redis holds, as bytes."""
    return b"".join(redis.dump(key) or b"" for key in redis.scan_iter())


def test_a_worker_over_tls_serves_and_shows_its_password_nowhere(
    server: tuple[RedisServer, int], certificate: Path, repository: Path, tmp_path: Path
) -> None:
    redis_server, port = server
    url = f"rediss://:{SECRET}@localhost:{port}?ssl_ca_certs={certificate}"
    with (
        open_workers("", repository, tmp_path) as made,
        redis_server.client(password=SECRET) as redis,
        Client(url) as client,
    ):
        worker = launch(made, url, "--with-scheduler", "--verbose").wait_ready()
        assert_all_right(client, redis, submit(client, 50))
        (bad,) = client.submit_many("gather", [{"index": np.array([99])}], retry=1)
        wait_until(lambda: redis.hget(keys.job(bad.id), "status") == b"failed")
        assert b"tensorq_worker.cli" in command_lines(worker.pid)
        assert SECRET.encode() not in command_lines(worker.pid)
        assert SECRET.encode() not in everything(redis)
        redis_server.stop()
        wait_until(lambda: "trying again" in worker.log or "Redis:" in worker.log)
        with pytest.raises(RedisUnavailable) as caught:
            client.submit(MODEL, {"x": rows(1)})
        assert SECRET not in str(caught.value)
        assert SECRET not in repr(caught.value.__cause__)
        worker.process.terminate()
        time.sleep(1.1)
        worker.process.terminate()
        worker.wait(60)
        assert SECRET not in worker.log


@pytest.mark.parametrize(
    ("url", "code", "words"),
    [
        ("rediss://:{secret}@localhost:{port}", 69, "cannot be reached"),
        ("redis://:{secret}@localhost:{port}", 69, "cannot be reached"),
        ("rediss://:wrong-{secret}@localhost:{port}?ssl_ca_certs={ca}", 69, "refused the credentials"),
        ("rediss://:{secret}@[localhost:{port}", 78, "the Redis URL is malformed"),
        ("rediss://:{secret}@localhost:{port}?db={secret}", 78, "the Redis URL is malformed"),
    ],
    ids=["unknown certificate", "no TLS", "wrong password", "malformed address", "malformed option"],
)
def test_a_worker_that_cannot_connect_says_why_without_its_password(
    server: tuple[RedisServer, int],
    certificate: Path,
    repository: Path,
    tmp_path: Path,
    url: str,
    code: int,
    words: str,
) -> None:
    named = url.format(secret=SECRET, port=server[1], ca=certificate)
    with open_workers("", repository, tmp_path) as made:
        worker = launch(made, named)
        assert worker.wait(40) == code
    assert words in worker.log
    assert SECRET not in worker.log
    assert "Traceback" not in worker.log


def test_the_command_line_does_not_print_it_either(server: tuple[RedisServer, int]) -> None:
    url = f"redis://:{SECRET}@localhost:{server[1]}"
    with Client(url) as client:
        assert SECRET not in repr(client)
    out = subprocess.run(
        [sys.executable, "-m", "tensorq_worker.cli", "models", "list"],
        env=environment(TENSORQ_REDIS=url),
        capture_output=True,
        text=True,
        check=False,
    )
    assert out.returncode == 69
    assert SECRET not in out.stdout + out.stderr


def test_a_password_on_the_command_line_is_warned_of_without_repeating_it() -> None:
    def warned(*arguments: str, **env: str) -> str:
        command = [sys.executable, "-m", "tensorq_worker.cli", "models", "list", *arguments]
        out = subprocess.run(command, env=environment(**env), capture_output=True, text=True, check=False)
        assert SECRET not in out.stdout + out.stderr
        return out.stderr

    url = f"redis://:{SECRET}@localhost:1"
    assert "put the URL into TENSORQ_REDIS" in warned("--redis", url)
    assert "put the URL into TENSORQ_REDIS" in warned("--redis", f"unix:///nowhere?password={SECRET}")
    assert "put the URL into" not in warned(TENSORQ_REDIS=url)
    assert "put the URL into" not in warned("--redis", "redis://localhost:1")
