"""The ceiling's worker: ``python -m ops.bench.scenarios.pipelined_worker URL``."""

from __future__ import annotations

import os
import sys
from typing import cast

import numpy as np
import onnxruntime
from ops.bench.model import IN
from ops.bench.scenarios.pipelined import DONE, JOB, QUEUE, READY, STATS
from redis import Redis

BATCH = 64


def main() -> None:
    redis = Redis.from_url(sys.argv[1])
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    model = os.environ["BENCH_MODEL"]
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    redis.set(READY, 1)
    while True:
        # A blocking pop only where nothing waits: it takes one job.
        ids = redis.lpop(QUEUE, BATCH) or (redis.blpop([QUEUE], timeout=1) or ())[1:]
        if ids:
            run(redis, session, cast("list[bytes]", ids))


def run(redis: Redis, session: onnxruntime.InferenceSession, ids: list[bytes]) -> None:
    keys = [JOB + job_id.decode() for job_id in ids]
    with redis.pipeline(transaction=False) as pipe:
        for key in keys:
            pipe.hgetall(key)
        rows = b"".join([fields[b"x"] for fields in pipe.execute()])
    (y,) = session.run(["y"], {"x": np.frombuffer(rows, np.float32).reshape(len(ids), IN)})
    with redis.pipeline(transaction=False) as pipe:
        for key, row in zip(keys, y, strict=True):
            pipe.hset(key, "y", row.tobytes())
        pipe.rpush(DONE, *ids)
        pipe.hincrby(STATS, "tiles", 1)
        pipe.hincrby(STATS, "rows", len(ids))
        pipe.execute()


if __name__ == "__main__":
    main()
