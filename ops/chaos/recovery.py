"""How long it takes until what a worker held is given back, and until it is done."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import Any, Self

from ops.chaos.server import Server
from redis import Redis
from redis.exceptions import RedisError

from tensorq import keys

POLL_S = 0.05
_ENDED = (b"finished", b"failed")


@dataclass(slots=True)
class Loss:
    """A worker's death or long pause, and what it held.

    Attributes:
        worker: its name.
        cause: what happened to it.
        since: `time.monotonic` of the fault.
        held: ids of the jobs that it had leased; None until Redis was asked.
        back_s: seconds until the last of them was given back; None where there was none.
        done_s: seconds until the last of them had ended.
    """

    worker: str
    cause: str
    since: float
    held: list[str] | None = None
    waiting: set[str] = field(default_factory=set)
    running: set[str] = field(default_factory=set)
    back_s: float | None = None
    done_s: float | None = None

    @property
    def over(self) -> bool:
        return self.held is not None and not (self.waiting or self.running)


class Recovery:
    """Watches losses, on a thread of its own; a Redis that is away counts as time."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="recovery", daemon=True)
        self.losses: list[Loss] = []

    def watch(self, worker: str, cause: str) -> None:
        """Begins to watch what a worker that was just lost held."""
        with self._lock:
            self.losses.append(Loss(worker, cause, time.monotonic()))

    def open(self) -> int:
        """Losses whose jobs have not all ended."""
        with self._lock:
            return sum(not loss.over for loss in self.losses)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        with self._server.client() as redis:
            while not self._stop.wait(POLL_S):
                with self._lock:
                    losses = [loss for loss in self.losses if not loss.over]
                for loss in losses:
                    try:
                        _look(redis, loss)
                    except RedisError:
                        break


def held_by(redis: Redis, worker: str) -> list[str]:
    """Ids of the jobs that a worker holds leases on."""
    members: Any = redis.smembers(keys.executions_of(worker))
    ids = [member.decode().rpartition(":")[0] for member in members]
    return [job_id for job_id, held in zip(ids, _held(redis, ids, worker), strict=True) if held]


def _look(redis: Redis, loss: Loss) -> None:
    if loss.held is None:
        loss.held = held_by(redis, loss.worker)
        loss.waiting, loss.running = set(loss.held), set(loss.held)
        return
    waited_s = time.monotonic() - loss.since
    ids = list(loss.waiting | loss.running)
    pipe = redis.pipeline(transaction=False)
    for job_id in ids:
        pipe.hmget(keys.job(job_id), "status", "worker_name")
    for job_id, (status, worker) in zip(ids, pipe.execute(), strict=True):
        if status != b"started" or worker != loss.worker.encode():
            loss.waiting.discard(job_id)
        if status in _ENDED:
            loss.running.discard(job_id)
    if loss.held and not loss.waiting and loss.back_s is None:
        loss.back_s = waited_s
    if loss.held and not loss.running and loss.done_s is None:
        loss.done_s = waited_s


def _held(redis: Redis, ids: list[str], worker: str) -> list[bool]:
    if not ids:
        return []
    pipe = redis.pipeline(transaction=False)
    for job_id in ids:
        pipe.hmget(keys.job(job_id), "status", "worker_name")
    return [fields == [b"started", worker.encode()] for fields in pipe.execute()]
