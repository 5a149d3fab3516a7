"""Progress: a line in the log now and then while a plan is built, which can take minutes."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

logger = logging.getLogger(__name__)

REPORT_S = 10.0


class Progress:
    """What the builder is doing now; written by its threads, read by the one that logs."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._phases: dict[str, tuple[int, int]] = {}

    def start(self, phase: str, steps: int) -> None:
        """A phase of ``steps`` steps begins."""
        with self._lock:
            self._phases[phase] = (0, steps)

    def step(self, phase: str, step: int) -> None:
        """A step of a phase is done; the first is 0."""
        with self._lock:
            if phase in self._phases:
                self._phases[phase] = (step + 1, self._phases[phase][1])

    def finish(self, phase: str) -> None:
        """A phase ends."""
        with self._lock:
            self._phases.pop(phase, None)

    def __str__(self) -> str:
        with self._lock:
            return ", ".join(f"{name} {done}/{steps}" for name, (done, steps) in self._phases.items())


@contextmanager
def reporting(what: str, progress: Progress, every_s: float = REPORT_S) -> Iterator[None]:
    """Logs, every ``every_s`` seconds, that ``what`` is still being built, and how far it is."""
    ended = threading.Event()
    began = time.perf_counter()

    def report() -> None:
        while not ended.wait(every_s):
            logger.info("%s: building since %.0f s %s", what, time.perf_counter() - began, progress)

    thread = threading.Thread(target=report, name="build-progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def progress_monitor(trt: Any, progress: Progress) -> Any:
    """Returns an ``IProgressMonitor`` that writes to ``progress``, or None where TensorRT has none."""
    if not hasattr(trt, "IProgressMonitor"):
        return None

    class Monitor(trt.IProgressMonitor):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()

        def phase_start(self, phase_name: str, parent_phase: str | None, num_steps: int) -> None:
            progress.start(phase_name, num_steps)

        def step_complete(self, phase_name: str, step: int) -> bool:
            progress.step(phase_name, step)
            return True

        def phase_finish(self, phase_name: str) -> None:
            progress.finish(phase_name)

    return Monitor()
