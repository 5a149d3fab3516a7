from __future__ import annotations

import os
import signal
import socket
import stat
import time
from pathlib import Path

import pytest

from tensorq.embedded import (
    EmbeddedRedis,
    EmbeddedRedisError,
    FolderUnusable,
    PortTaken,
    ServerDied,
    StartTimeout,
    folder,
)
from tensorq.errors import ConfigError, RedisUnavailable

pytestmark = pytest.mark.integration


def test_starts_answers_and_ends_with_its_folder(binary, connect, gone):
    with EmbeddedRedis(binary=binary) as server:
        redis = connect(server.url)
        assert redis.set("key", "value")
        assert redis.get("key") == "value"
        assert redis.info("server")["process_id"] == server.pid
        assert server.binary == binary
        assert not server.durable
        pid, path = server.pid, Path(redis.config_get("dir")["dir"])
        assert path.is_dir()
    assert gone(pid, path, within_s=0)
    assert "eady to accept connections" in server.log_tail()


def test_only_this_user_can_open_the_socket(binary, connect):
    with EmbeddedRedis(binary=binary) as server:
        path = Path(server.url.removeprefix("unix://"))
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        assert connect(server.url).config_get("port") == {"port": "0"}


@pytest.mark.parametrize("port", [None, 0])
def test_two_at_once_hold_data_of_their_own(binary, connect, port):
    with EmbeddedRedis(binary=binary, port=port) as one, EmbeddedRedis(binary=binary, port=port) as two:
        connect(one.url).set("key", "one")
        assert connect(two.url).get("key") is None
        assert one.url.startswith("unix://" if port is None else "redis://127.0.0.1:")


def test_settings_reach_the_server(binary, connect):
    config = {"maxclients": "77", "save": "3600 9"}
    with EmbeddedRedis(binary=binary, maxmemory="50mb", config=config) as server:
        redis = connect(server.url)
        assert redis.config_get("maxmemory")["maxmemory"] == str(50 * 2**20)
        assert redis.config_get("maxclients")["maxclients"] == "77"
        assert redis.config_get("save")["save"] == "3600 9"


def test_append_only_data_survives_a_restart_in_the_same_directory(binary, connect, tmp_path):
    with EmbeddedRedis(tmp_path / "data", binary=binary, appendonly=True) as server:
        assert server.durable
        connect(server.url).set("key", "value")
    with EmbeddedRedis(tmp_path / "data", binary=binary, appendonly=True) as server:
        assert connect(server.url).get("key") == "value"


def test_a_directory_is_kept_and_freed(binary, tmp_path):
    server = EmbeddedRedis(tmp_path, binary=binary)
    for _ in range(2):
        with server:
            pass
    assert (tmp_path / "server.log").exists()


def test_a_directory_takes_one_server(binary, tmp_path, connect, monkeypatch):
    monkeypatch.setattr(folder, "LOCK_PATIENCE_S", 0.3)
    with (
        EmbeddedRedis(tmp_path, binary=binary) as server,
        pytest.raises(FolderUnusable, match="another embedded server runs in"),
    ):
        EmbeddedRedis(tmp_path, binary=binary).start()
    with EmbeddedRedis(tmp_path, binary=binary) as server:
        assert connect(server.url).ping()


def test_a_taken_port_is_told(binary):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(PortTaken, match=f"port {port} of 127.0.0.1 is taken"):
            EmbeddedRedis(binary=binary, port=port).start()


def test_another_server_on_the_port_is_not_mistaken_for_ours(binary, connect):
    with EmbeddedRedis(binary=binary, port=0) as first:
        port = int(first.url.rsplit(":", 1)[1])
        with pytest.raises(PortTaken):
            EmbeddedRedis(binary=binary, port=port).start()
        assert connect(first.url).ping()


@pytest.mark.parametrize("directory", ["/proc/self", "/proc/nowhere", "/dev/null"])
def test_an_unwritable_directory_is_told(directory):
    with pytest.raises(FolderUnusable, match=f"cannot use the folder '{directory}'"):
        EmbeddedRedis(directory).start()


def test_a_path_too_long_for_a_socket_is_told_and_does_for_tcp(binary, tmp_path, connect):
    long = tmp_path / ("x" * 120)
    with pytest.raises(FolderUnusable, match="shorter path, or port=0"):
        EmbeddedRedis(long, binary=binary).start()
    with EmbeddedRedis(long, binary=binary, port=0) as server:
        assert connect(server.url).ping()


def test_a_server_that_ends_at_its_start_is_told_with_its_last_lines(binary):
    with pytest.raises(ServerDied, match="no-such-parameter") as caught:
        EmbeddedRedis(binary=binary, config={"no-such-parameter": "1"}).start()
    assert "FATAL CONFIG FILE ERROR" in caught.value.log
    assert isinstance(caught.value, RedisUnavailable)


def test_a_program_that_cannot_be_run_is_told(tmp_path):
    program = tmp_path / "server"
    program.write_bytes(b"\x7fELF?")
    program.chmod(0o700)
    with pytest.raises(ServerDied, match="could not be run: Exec format error"):
        EmbeddedRedis(binary=program).start()


def test_a_server_that_never_answers_is_ended(tmp_path, gone):
    program = tmp_path / "server"
    program.write_text(f"#!/bin/sh\necho $$ > {tmp_path}/pid\nexec sleep 60\n")
    program.chmod(0o700)
    before = time.monotonic()
    with pytest.raises(StartTimeout, match=r"within 0\.5 s"):
        EmbeddedRedis(binary=program, start_timeout_s=0.5).start()
    assert time.monotonic() - before < 3
    assert gone(int((tmp_path / "pid").read_text()))


def test_a_server_that_dies_later_is_seen(binary):
    with EmbeddedRedis(binary=binary) as server:
        assert server.wait(0) is None
        os.kill(server.pid, signal.SIGKILL)
        assert server.wait(3) == -signal.SIGKILL
        assert "eady to accept connections" in server.log_tail()


def test_using_one_that_does_not_run_is_told(binary):
    server = EmbeddedRedis(binary=binary)
    with pytest.raises(EmbeddedRedisError, match="not running"):
        _ = server.url
    with server, pytest.raises(EmbeddedRedisError, match="started already"):
        server.start()
    server.close()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"port": 70000}, "port=70000"),
        ({"start_timeout_s": 0}, "start_timeout_s=0"),
        ({"config": {"Bind": "0.0.0.0"}}, "sets 'Bind' itself"),
        ({"config": {"a b": "1"}}, "not a parameter"),
    ],
)
def test_malformed_settings_are_told_before_anything_starts(settings, message):
    with pytest.raises(ConfigError, match=message):
        EmbeddedRedis(**settings)
