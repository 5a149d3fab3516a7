"""The one worker process of the demo."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from ops.demo.failure import DemoFailure

from tensorq import Client
from tensorq.models import ModelState

START_S = 60.0
BUILD_S = 1800.0
STOP_S = 20.0


class Worker:
    """A ``tensorq worker`` over ``models``, from ``with`` to its end; its output goes to ``log``."""

    def __init__(self, models: Path, url: str, log: Path) -> None:
        command = [
            sys.executable,
            "-m",
            "tensorq_worker.cli",
            "worker",
            "--models",
            str(models),
            "--redis",
            url,
        ]
        self._command = command
        self._log = log

    def __enter__(self) -> Self:
        # A session of its own: Ctrl-C ends the demo, and the demo ends its worker.
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        return self

    def wait_ready(self, client: Client, names: set[str]) -> None:
        """Waits until the worker publishes all of ``names`` as loaded.

        Raises:
            DemoFailure: it ended, could not load one, or took longer than a minute; half an hour where
                TensorRT builds plans.
        """
        began = time.monotonic()
        limit_s = START_S
        while True:
            self.check()
            known = {info.name: info for info in client.models()}
            if limit_s < BUILD_S and any(info.engine == "tensorrt" for info in known.values()):
                print("worker: TensorRT plans that are not there are built now, which takes minutes once")
                limit_s = BUILD_S
            failed = [info for info in known.values() if info.state is ModelState.FAILED]
            if failed:
                raise DemoFailure(f"the worker could not load {failed[0].name}: {failed[0].reason}")
            if names <= {name for name, info in known.items() if info.state is ModelState.READY}:
                return
            if time.monotonic() - began > limit_s:
                states = {name: info.state.value for name, info in known.items()}
                raise DemoFailure(f"the worker was not ready within {limit_s:g} s: {states}\n{self._tail()}")
            time.sleep(0.05)

    def check(self) -> None:
        """Raises DemoFailure if the worker has ended."""
        if (code := self._process.poll()) is not None:
            raise DemoFailure(f"the worker ended with status {code}; its last lines:\n{self._tail()}")

    def stop(self) -> None:
        """Ends the worker in order.

        Raises:
            DemoFailure: it did not end with status 0 within 20 s of SIGTERM.
        """
        self.check()
        self._process.terminate()
        try:
            code = self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            raise DemoFailure(
                f"the worker did not end within {STOP_S:g} s of SIGTERM\n{self._tail()}"
            ) from None
        if code != 0:
            raise DemoFailure(f"the worker ended with status {code} after SIGTERM:\n{self._tail()}")

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def _tail(self, lines: int = 20) -> str:
        return "\n".join(self._log.read_text(errors="replace").splitlines()[-lines:])
