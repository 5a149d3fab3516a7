"""Stock RQ as its documentation has it: a function, arrays pickled into it, results read from the job."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from ops.bench.model import BATCHED
from ops.bench.scenarios.base import Scenario
from redis import Redis
from rq import Queue, Worker
from rq.job import Job

QUEUE = "stock"
FUNCTION = "ops.bench.scenarios.stock_function.predict"
POLL_S = 0.001


class StockRq(Scenario):
    """``rq worker --worker-class rq.SimpleWorker``, which does not fork and keeps the model in memory."""

    name = "rq SimpleWorker"
    key = "rq"
    warm_jobs = 20

    def __init__(self, url: str, repository: Path) -> None:
        super().__init__(url, repository)
        self._redis = Redis.from_url(self.url)
        self._queue = Queue(QUEUE, connection=self._redis)

    def command(self) -> list[str]:
        # --quiet: a log line or two a job would count against it.
        return [
            "-m",
            "rq.cli",
            "worker",
            "--worker-class",
            "rq.SimpleWorker",
            "--quiet",
            "-u",
            self.url,
            QUEUE,
        ]

    def environment(self) -> Mapping[str, str]:
        return {"BENCH_MODEL": str(self.repository / BATCHED / "model.onnx")}

    def ready(self) -> bool:
        return any(worker.state == "idle" for worker in Worker.all(connection=self._redis))

    def submit(self, x: np.ndarray) -> list[Job]:
        return [self._queue.enqueue(FUNCTION, x[row : row + 1]) for row in range(len(x))]

    def collect(self, handles: Sequence[Job], timeout_s: float) -> list[np.ndarray]:
        give_up = time.monotonic() + timeout_s
        return [_result(job, give_up) for job in handles]

    def close(self) -> None:
        self._redis.close()


def _result(job: Job, give_up: float) -> np.ndarray:
    """Polls: jobs end in order, so that nearly every poll but the first few finds a result."""
    while True:
        value = job.return_value(refresh=True)
        if isinstance(value, np.ndarray):
            return value
        if job.is_failed or time.monotonic() > give_up:
            raise SystemExit(f"rq: job {job.id} is {job.get_status()}, and has no result")
        time.sleep(POLL_S)
