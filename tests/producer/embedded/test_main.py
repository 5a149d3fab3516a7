from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from tensorq.embedded.__main__ import main

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_prints_the_url_and_ends_on_a_signal(end, connect, gone):
    process = subprocess.Popen(
        [sys.executable, "-m", "tensorq.embedded", "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None
        redis = connect(process.stdout.readline().strip())
        pid = redis.info("server")["process_id"]
        process.send_signal(end)
        assert process.wait(10) == 0
        assert "Traceback" not in process.stderr.read()
    assert gone(pid, within_s=0)


@pytest.mark.parametrize(
    "options", [["--port", "70000"], ["--binary", "no-such-server"], ["--maxmemory", "?"]]
)
def test_a_mistake_is_one_message(options, capsys):
    assert main(options) == 1
    assert capsys.readouterr().err.startswith("error: ")
