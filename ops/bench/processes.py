"""Worker processes: started, stopped and killed so that none outlives the bench."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import NoReturn

ROOT = Path(__file__).parents[2]
PR_SET_PDEATHSIG = 1
STOP_S = 15.0


class Worker:
    """One running worker process.

    Args:
        process: the process.
        log: where its output goes.
    """

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self._process = process
        self._log = log

    @property
    def pid(self) -> int:
        return self._process.pid

    def expect_alive(self) -> None:
        """Returns if it runs.

        Raises:
            SystemExit: it ended; the message holds the end of its log.
        """
        if self._process.poll() is not None:
            tail = self._log.read_text(errors="replace")[-2000:]
            raise SystemExit(f"a worker ended with status {self._process.returncode}:\n{tail}")

    def stop(self) -> None:
        """Ends it as a supervisor would, and waits; killed where it takes longer than `STOP_S`."""
        self._process.terminate()
        try:
            self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """Ends it at once; its keys are flushed with the next run's start."""
        self._process.kill()
        self._process.wait()


@contextmanager
def worker(command: Sequence[str], environment: Mapping[str, str], log: Path) -> Iterator[Worker]:
    """Runs a Python worker, ``python *command``, for the length of the block."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, *command],
            env={**os.environ, "PYTHONPATH": _path(), **environment},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            preexec_fn=_end_with_parent,
        )
    running = Worker(process, log)
    try:
        yield running
    finally:
        running.kill()


def _path() -> str:
    """Where workers find this bench, before what the caller's PYTHONPATH has."""
    return os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))


def end_on_sigterm() -> None:
    """Lets SIGTERM unwind this process, so that what it started is cleaned up."""
    signal.signal(signal.SIGTERM, _leave)


def _leave(signum: int, frame: FrameType | None) -> NoReturn:
    raise SystemExit(128 + signum)


def _end_with_parent() -> None:
    # Linux only; elsewhere a bench that is killed outright leaves its worker to find Redis gone.
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
