"""Memory over 200,000 jobs through one worker: does anything grow?

    python ops/bench/memory.py [--jobs 200000]

Fails where the worker's resident memory grows by more than 5 MiB over the second half.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from redis import Redis

sys.path.insert(0, str(Path(__file__).parents[2]))

from ops.bench import model, proc, processes
from ops.bench.measure import RUN_S, warm_up
from ops.bench.scenarios import TensorqTiles

from tensorq.embedded import EmbeddedRedis

WINDOW_JOBS = 10_000
PRINT_JOBS = 20_000
RESULT_TTL_S = 3
MOST_GROWTH_BYTES = 5 * 2**20
MIB = 2**20


@dataclass(frozen=True, slots=True)
class Sample:
    """Memory in bytes, and Redis keys, once ``jobs`` jobs are done."""

    jobs: int
    worker: int
    client: int
    redis: int
    keys: int


def take(jobs: int, worker_pid: int, redis: Redis) -> Sample:
    memory, keys = redis.info("memory")["used_memory"], redis.dbsize()
    return Sample(jobs, proc.rss_bytes(worker_pid), proc.rss_bytes(os.getpid()), memory, keys)


def run(scenario: TensorqTiles, jobs: int, redis: Redis, log: Path) -> list[Sample]:
    """Runs jobs in windows and samples after each."""
    samples = []
    with processes.worker(scenario.command(), scenario.environment(), log) as running:
        warm_up(scenario, running)
        print(f"{'jobs':>9}{'worker MiB':>13}{'client MiB':>13}{'redis MiB':>12}{'redis keys':>13}")
        for done in range(WINDOW_JOBS, jobs + 1, WINDOW_JOBS):
            x = model.inputs(WINDOW_JOBS, seed=done)
            model.check(x, scenario.collect(scenario.submit(x), RUN_S), scenario.name)
            running.expect_alive()
            samples.append(sample := take(done, running.pid, redis))
            if done % PRINT_JOBS == 0:
                sizes = f"{sample.worker / MIB:>13.1f}{sample.client / MIB:>13.1f}{sample.redis / MIB:>12.1f}"
                print(f"{done:>9,}{sizes}{sample.keys:>13,}", flush=True)
    return samples


def judge(samples: Sequence[Sample]) -> bool:
    """Prints how fast each grew over the second half; returns whether the worker grew too much."""
    half = samples[len(samples) // 2 - 1 :]
    jobs = [sample.jobs for sample in half]
    for name in ("worker", "client", "redis"):
        slope = np.polyfit(jobs, [getattr(sample, name) for sample in half], 1)[0]
        print(f"{name}: {slope:+.1f} bytes a job over the second half")
    grown = half[-1].worker - half[0].worker
    print(f"worker: {grown / MIB:+.2f} MiB over the second half, at most {MOST_GROWTH_BYTES // MIB} allowed")
    return grown > MOST_GROWTH_BYTES


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--jobs", type=int, default=200_000)
    options = parser.parse_args()
    if options.jobs < 4 * WINDOW_JOBS:
        parser.error(f"--jobs {options.jobs}: at least {4 * WINDOW_JOBS}, or there is no slope")
    processes.end_on_sigterm()
    with (
        tempfile.TemporaryDirectory() as name,
        EmbeddedRedis() as server,
        Redis.from_url(server.url) as redis,
    ):
        folder = Path(name)
        repository = model.write_repository(folder / "models")
        scenario = TensorqTiles(server.url, repository, model.BATCHED, "tensorq, tiles to 64", RESULT_TTL_S)
        samples = run(scenario, options.jobs, redis, folder / "worker.log")
        scenario.close()
    if judge(samples):
        raise SystemExit("the worker's memory grows")


if __name__ == "__main__":
    main()
