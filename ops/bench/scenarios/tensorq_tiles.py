"""tensorq: its own worker, started from its command line, and its own client."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import cast

import numpy as np
from ops.bench.scenarios.base import SLICE_JOBS, Scenario, Tiles
from redis import Redis

import tensorq
from tensorq import keys

THREADS = "1"


class TensorqTiles(Scenario):
    """Jobs of one row, in tiles of the sizes of a model's ladder.

    Args:
        url: the Redis server's.
        repository: folder of models.
        model: which of its models.
        title: the row's name in the table.
        result_ttl_s: how long results are kept; None for the worker's default.
    """

    def __init__(
        self, url: str, repository: Path, model: str, title: str, result_ttl_s: int | None = None
    ) -> None:
        super().__init__(url, repository)
        self.name = title
        self.key = model
        self._model = model
        self._result_ttl_s = result_ttl_s
        self._redis = Redis.from_url(url)
        self._client = tensorq.Client(self._redis)

    def command(self) -> list[str]:
        return ["-m", "tensorq_worker.cli", *self.arguments()]

    def arguments(self) -> list[str]:
        """The command line of ``tensorq`` itself."""
        return [
            *("worker", self._model, "--redis", self.url),
            *("--models", str(self.repository), "--threads", THREADS),
        ]

    def ready(self) -> bool:
        return any(
            info.name == self._model and info.state is tensorq.ModelState.READY
            for info in self._client.models()
        )

    def submit(self, x: np.ndarray) -> list[tensorq.Job]:
        jobs: list[tensorq.Job] = []
        for first in range(0, len(x), SLICE_JOBS):
            rows = range(first, min(first + SLICE_JOBS, len(x)))
            tensors = [{"x": x[row : row + 1]} for row in rows]
            if self._result_ttl_s is None:
                jobs += self._client.submit_many(self._model, tensors)
            else:
                jobs += self._client.submit_many(self._model, tensors, result_ttl=self._result_ttl_s)
        return jobs

    def collect(self, handles: Sequence[tensorq.Job], timeout_s: float) -> list[np.ndarray]:
        return [outputs["y"] for outputs in self._client.gather(handles, timeout=timeout_s)]

    def tiles(self) -> Tiles:
        stats = cast("dict[bytes, bytes]", self._redis.hgetall(keys.stats(self._model)))
        return Tiles(*(int(stats.get(name, 0)) for name in (b"tiles", b"rows", b"padding")))

    def close(self) -> None:
        self._client.close()
        self._redis.close()
