"""The workers, and the supervisor that starts again whatever ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

ROOT = Path(__file__).parents[2]
POLL_S, RESTART_S, STOP_S = 0.05, 0.3, 20.0
# Exit codes of a worker that nobody touched: a poison job's, and no usable Redis.
POISONED, NO_REDIS = -signal.SIGSEGV, os.EX_UNAVAILABLE


@dataclass(slots=True)
class Slot:
    """A place for one worker at a time.

    Attributes:
        name: RQ name of the worker that is there.
        process: it.
        log: its output, with that of those before it.
        start_at: `time.monotonic` at which the next one is started, where there is none.
        signals: what it was sent and is allowed to end by.
    """

    name: str
    process: subprocess.Popen[bytes] | None
    log: Path
    start_at: float
    signals: set[signal.Signals]
    generation: int = 0


class Fleet:
    """Workers under a supervisor.

    Args:
        slots: how many workers.
        command: of a worker, after ``python`` and without its name.
        env: added to their environment.
        folder: where logs go.
        died: told the name of each worker that ended without having been asked to.
    """

    def __init__(
        self,
        slots: int,
        command: list[str],
        env: Mapping[str, str],
        folder: Path,
        died: Callable[[str], None],
    ) -> None:
        self._command = command
        self._env = {**os.environ, **env}
        self._died = died
        self._lock = threading.Lock()
        self._slots = [Slot("", None, folder / f"worker-{n}.log", 0.0, set()) for n in range(slots)]
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._supervise, name="supervisor", daemon=True)
        self.exits: Counter[str] = Counter()
        self.unexpected: list[str] = []

    def name(self, place: int) -> str | None:
        """Name of the worker at a place; None where there is none now."""
        with self._lock:
            slot = self._slots[place]
            return slot.name if slot.process is not None else None

    def send(self, place: int, sig: signal.Signals, away_s: float = 0.0) -> str | None:
        """Sends a signal to the worker at a place.

        Args:
            place: which slot.
            sig: SIGKILL and SIGTERM let it end.
            away_s: how long the slot stays empty then.

        Returns:
            Its name, or None where there is no worker now.
        """
        with self._lock:
            slot = self._slots[place]
            if slot.process is None or slot.process.poll() is not None:
                return None
            if sig in (signal.SIGKILL, signal.SIGTERM):
                slot.signals.add(sig)
                slot.start_at = time.monotonic() + away_s
            slot.process.send_signal(sig)
            return slot.name

    def stop(self) -> None:
        """Ends all as a supervisor would; those that do not end in time are told of and killed."""
        self._ending.set()
        self._thread.join()
        for place in range(len(self._slots)):
            self.send(place, signal.SIGCONT)
            self.send(place, signal.SIGTERM)
        give_up = time.monotonic() + STOP_S
        for slot in self._slots:
            if slot.process is not None:
                with suppress(subprocess.TimeoutExpired):
                    slot.process.wait(max(0.0, give_up - time.monotonic()))
                if slot.process.poll() is None:
                    self.unexpected.append(f"{slot.name} did not end within {STOP_S:.0f} s of SIGTERM")
                else:
                    self._note_end(slot)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ending.set()
        self._thread.join()
        for slot in self._slots:
            if slot.process is not None:
                with suppress(ProcessLookupError):
                    slot.process.kill()
                slot.process.wait()

    def _supervise(self) -> None:
        while not self._ending.wait(POLL_S):
            for slot in self._slots:
                with self._lock:
                    if slot.process is not None and slot.process.poll() is not None:
                        self._note_end(slot)
                    if slot.process is None and time.monotonic() >= slot.start_at:
                        self._start(slot)

    def _start(self, slot: Slot) -> None:
        slot.generation += 1
        slot.name = f"{slot.log.stem}-{slot.generation}"
        slot.signals = set()
        slot.start_at = 0.0
        with slot.log.open("ab") as log:
            slot.process = subprocess.Popen(
                [sys.executable, *self._command, "--name", slot.name],
                cwd=ROOT,
                env=self._env,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def _note_end(self, slot: Slot) -> None:
        process, slot.process = slot.process, None
        code = process.returncode if process is not None else 0
        slot.start_at = max(slot.start_at, time.monotonic() + RESTART_S)
        killed, stopped = signal.SIGKILL in slot.signals, signal.SIGTERM in slot.signals
        if code == -signal.SIGKILL and killed:
            self.exits["kill -9"] += 1
        elif code == 0 and stopped:
            self.exits["SIGTERM, exit code 0"] += 1
        elif code == -signal.SIGTERM and stopped:
            self.exits["SIGTERM while it was starting"] += 1
        elif code == POISONED:
            self.exits["a poison job, SIGSEGV"] += 1
            self._died(slot.name)
        elif code == NO_REDIS:
            self.exits["no Redis at start, exit code 69"] += 1
        else:
            tail = slot.log.read_text(errors="replace")[-1500:]
            self.exits[f"exit code {code}"] += 1
            self.unexpected.append(f"{slot.name} ended with {code}:\n{tail}")
