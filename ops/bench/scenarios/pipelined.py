"""The ceiling: a loop written for this bench, pipelines only, and nothing of RQ's schema or promises.

No lease, no registries, no status, no expiry, no checks: a crash loses jobs and nobody can look at one.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

import numpy as np
from ops.bench.model import BATCHED, OUT
from ops.bench.scenarios.base import SLICE_JOBS, Scenario, Tiles
from redis import Redis

QUEUE, DONE, JOB, STATS, READY = "raw:queue", "raw:done", "raw:job:", "raw:stats", "raw:ready"


class Pipelined(Scenario):
    """HSET and RPUSH in pipelines; LPOP of 64, HGETALL, one batch, HSET and RPUSH; LPOP and HGET."""

    name = "pipelined loop"
    key = "pipelined"

    def __init__(self, url: str, repository: Path) -> None:
        super().__init__(url, repository)
        self._redis = Redis.from_url(self.url)
        self._submitted = 0

    def command(self) -> list[str]:
        return ["-m", "ops.bench.scenarios.pipelined_worker", self.url]

    def environment(self) -> Mapping[str, str]:
        return {"BENCH_MODEL": str(self.repository / BATCHED / "model.onnx")}

    def ready(self) -> bool:
        return bool(self._redis.exists(READY))

    def submit(self, x: np.ndarray) -> list[bytes]:
        start = self._submitted
        ids = [b"%d" % number for number in range(start, start + len(x))]
        self._submitted += len(x)
        for first in range(0, len(x), SLICE_JOBS):
            with self._redis.pipeline(transaction=False) as pipe:
                part = ids[first : first + SLICE_JOBS]
                for row, job_id in enumerate(part, first):
                    pipe.hset(JOB + job_id.decode(), "x", x[row].tobytes())
                pipe.rpush(QUEUE, *part)
                pipe.execute()
        return ids

    def collect(self, handles: Sequence[bytes], timeout_s: float) -> list[np.ndarray]:
        found: dict[bytes, bytes] = {}
        give_up = time.monotonic() + timeout_s
        while len(found) < len(handles):
            done = cast("list[bytes] | None", self._redis.lpop(DONE, SLICE_JOBS))
            if not done:
                first = cast("list[bytes] | None", self._redis.blpop([DONE], timeout=1))
                if first is None and time.monotonic() > give_up:
                    raise SystemExit(
                        f"pipelined: {len(found)} of {len(handles)} results in {timeout_s:.0f} s"
                    )
                done = first[1:] if first is not None else []
            with self._redis.pipeline(transaction=False) as pipe:
                for job_id in done:
                    pipe.hget(JOB + job_id.decode(), "y")
                found.update(zip(done, pipe.execute(), strict=True))
        return [np.frombuffer(found[job_id], np.float32).reshape(1, OUT) for job_id in handles]

    def tiles(self) -> Tiles:
        stats = cast("dict[bytes, bytes]", self._redis.hgetall(STATS))
        return Tiles(int(stats.get(b"tiles", 0)), int(stats.get(b"rows", 0)), 0)

    def close(self) -> None:
        self._redis.close()
