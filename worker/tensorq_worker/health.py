"""Health: a file and a supervisor's socket that say how the worker does."""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

from tensorq.errors import ConfigError
from tensorq_worker.systemd import Systemd

log = logging.getLogger("rq.worker")

EVERY_S = 2.0
# How much longer a start may take, of systemd's patience, with every tick until the models are loaded.
EXTEND_US = 60_000_000


class Health:
    """What a supervisor or a probe can see of one worker.

    The file is JSON: ``state`` (``starting``, ``ready`` or ``stopping``), ``worker``, ``pid``, ``held``
    (jobs) and ``at`` (Unix time in s); it is written anew every `EVERY_S` seconds and gone after a good end.
    One that is older than a few of those means a worker that hangs or died.

    Args:
        worker: the worker's RQ name.
        file: where; None for no file.
        held: tells how many jobs the worker holds.
        systemd: the supervisor's socket.

    Raises:
        ConfigError: the file cannot be written.
    """

    def __init__(
        self, worker: str, file: Path | None, held: Callable[[], int], systemd: Systemd | None = None
    ) -> None:
        self._worker = worker
        self._file = file
        self._held = held
        self._systemd = systemd if systemd is not None else Systemd()
        self._state = "starting"
        self._refused = ""
        self._lock = threading.Lock()
        if file is not None and (file.is_dir() or not os.access(file.parent, os.W_OK | os.X_OK)):
            raise ConfigError(f"health_file: {file} cannot be written; name a file in a folder that can be")

    @property
    def every_s(self) -> float:
        """Seconds between two calls of `tick`: often enough for the supervisor's watchdog."""
        watchdog_s = self._systemd.watchdog_s
        return EVERY_S if watchdog_s is None else min(EVERY_S, watchdog_s / 3)

    def tick(self) -> None:
        """Says that the worker lives; called from the watch, so a process that hangs stays silent."""
        extend = [f"EXTEND_TIMEOUT_USEC={EXTEND_US}"] if self._state == "starting" else []
        self._systemd.send("WATCHDOG=1", *extend)
        self._write()

    def ready(self) -> None:
        """Says that the models are served."""
        if self._state == "starting":
            self._state = "ready"
            self._systemd.send("READY=1")
            self._write()

    def stopping(self) -> None:
        """Says, once, that the worker finishes what it holds and ends."""
        if self._state != "stopping":
            self._state = "stopping"
            self._systemd.send("STOPPING=1")
            self._write()

    def close(self) -> None:
        """Says so, if it was not said, and removes the file."""
        self.stopping()
        if self._file is not None:
            self._try(lambda file: file.unlink(missing_ok=True))

    def _write(self) -> None:
        self._try(self._put)

    def _try(self, act: Callable[[Path], None]) -> None:
        """Works on the file, alone; a disk that is full or gone ends no worker, and is told once."""
        if self._file is None:
            return
        with self._lock:
            try:
                act(self._file)
                self._refused = ""
            except OSError as exc:
                refused = exc.strerror or str(exc)
                if refused != self._refused:
                    log.error("health_file: %s cannot be written: %s", self._file, refused)
                self._refused = refused

    def _put(self, file: Path) -> None:
        facts = {
            "state": self._state,
            "worker": self._worker,
            "pid": os.getpid(),
            "held": self._held(),
            "at": round(time.time(), 3),
        }
        scratch = file.with_name(f".{file.name}.{os.getpid()}")
        scratch.write_text(json.dumps(facts) + "\n", encoding="utf-8")
        scratch.replace(file)
