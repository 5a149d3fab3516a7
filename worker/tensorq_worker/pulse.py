"""Pulse: what must happen on time whatever the loop does: beats, reaping, publishing, the watchdog."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from redis.exceptions import RedisError

log = logging.getLogger("rq.worker")


class Task:
    """Something done every ``every_s`` seconds, for the first time at once."""

    def __init__(self, name: str, every_s: float, act: Callable[[], None]) -> None:
        self.name = name
        self.every_s = every_s
        self.act = act
        self.due = time.monotonic()


class Pulse:
    """Runs tasks on one thread; a task that Redis interrupts is tried again after a second.

    Args:
        tasks: what to do and how often.
        name: of the thread.
    """

    def __init__(self, tasks: list[Task], name: str = "tensorq-pulse") -> None:
        self._tasks = tasks
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Starts the thread."""
        self._thread.start()

    def close(self) -> None:
        """Ends the thread, after the task under way."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(timeout=5)

    def _run(self) -> None:
        while not self._stop.is_set():
            now = time.monotonic()
            for task in self._tasks:
                if task.due <= now and not self._stop.is_set():
                    task.due = now + task.every_s
                    self._act(task)
            soonest = min(task.due for task in self._tasks)
            self._stop.wait(max(0.01, soonest - time.monotonic()))

    def _act(self, task: Task) -> None:
        try:
            task.act()
        except RedisError as exc:
            log.error("%s: Redis: %s", task.name, exc)
            task.due = min(task.due, time.monotonic() + 1.0)
        except Exception:
            log.exception("%s failed", task.name)
