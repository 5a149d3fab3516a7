"""What supervisors and probes are told: systemd's messages, and the health file."""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tensorq.errors import ConfigError
from tensorq_worker.health import EVERY_S, Health
from tensorq_worker.systemd import Systemd


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(str(tmp_path / "s"))
        listener.setblocking(False)
        yield listener


def said(listener: socket.socket) -> list[str]:
    messages = []
    while True:
        try:
            messages.append(listener.recv(4096).decode())
        except BlockingIOError:
            return messages


def test_a_life_is_told_in_order_and_each_step_once(supervisor: socket.socket) -> None:
    systemd = Systemd({"NOTIFY_SOCKET": supervisor.getsockname()})
    health = Health("w", None, lambda: 0, systemd)
    for step in (health.tick, health.ready, health.ready, health.tick, health.stopping, health.close):
        step()
    assert said(supervisor) == [
        "WATCHDOG=1\nEXTEND_TIMEOUT_USEC=60000000",
        "READY=1",
        "WATCHDOG=1",
        "STOPPING=1",
    ]


def test_an_abstract_socket_is_found() -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        name = f"tensorq-test-{os.getpid()}"
        listener.bind("\0" + name)
        Systemd({"NOTIFY_SOCKET": "@" + name}).send("READY=1", "STATUS=well")
        assert listener.recv(100) == b"READY=1\nSTATUS=well"


@pytest.mark.parametrize(
    ("variables", "every_s"),
    [
        ({}, EVERY_S),
        ({"WATCHDOG_USEC": "3000000"}, 1.0),
        ({"WATCHDOG_USEC": "3000000", "WATCHDOG_PID": str(os.getpid())}, 1.0),
        ({"WATCHDOG_USEC": "3000000", "WATCHDOG_PID": "1"}, EVERY_S),
        ({"WATCHDOG_USEC": "60000000"}, EVERY_S),
        ({"WATCHDOG_USEC": "0"}, EVERY_S),
        ({"WATCHDOG_USEC": "soon"}, EVERY_S),
    ],
)
def test_signs_of_life_come_often_enough_for_the_watchdog(variables: dict[str, str], every_s: float) -> None:
    health = Health("w", None, lambda: 0, Systemd({"NOTIFY_SOCKET": "/nowhere"} | variables))
    assert health.every_s == every_s


def test_a_supervisor_that_does_not_listen_does_no_harm(tmp_path: Path, caplog) -> None:
    Systemd({}).send("READY=1")
    Systemd({"NOTIFY_SOCKET": str(tmp_path / "gone")}).send("READY=1")
    assert "does not take READY=1" in caplog.text


def test_the_file_says_how_the_worker_does_and_is_gone_at_the_end(tmp_path: Path) -> None:
    file = tmp_path / "health"
    health = Health("w", file, lambda: 7, Systemd({}))
    for step, state in ((health.tick, "starting"), (health.ready, "ready"), (health.stopping, "stopping")):
        step()
        facts = json.loads(file.read_text())
        assert abs(facts.pop("at") - time.time()) < 5
        assert facts == {"state": state, "worker": "w", "pid": os.getpid(), "held": 7}
    health.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("place", ["missing/health", "."])
def test_a_file_that_cannot_be_written_is_told_at_once(tmp_path: Path, place: str) -> None:
    with pytest.raises(ConfigError, match=r"health_file: .* cannot be written"):
        Health("w", tmp_path / place, lambda: 0, Systemd({}))


def test_two_threads_may_write_the_file_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    health = Health("w", tmp_path / "health", lambda: 0, Systemd({}))
    write, others = Path.write_text, []

    def write_and_let_another_tick(path: Path, *args, **kwargs) -> int:
        written = write(path, *args, **kwargs)
        if not others:
            others.append(threading.Thread(target=health.tick))
            others[0].start()
            others[0].join(0.3)
        return written

    monkeypatch.setattr(Path, "write_text", write_and_let_another_tick)
    health.ready()
    others[0].join(5)
    assert json.loads((tmp_path / "health").read_text())["state"] == "ready"


def test_a_file_that_cannot_be_written_any_more_ends_no_worker(tmp_path: Path, caplog) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    health = Health("w", folder / "health", lambda: 0, Systemd({}))
    folder.rmdir()
    for step in (health.tick, health.ready, health.tick, health.stopping, health.close):
        step()
    assert caplog.text.count("cannot be written") == 1
