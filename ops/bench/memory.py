"""Memory over 200,000 jobs through one worker: does anything grow?

    python ops/bench/memory.py [--jobs 200000] [--out out/bench/memory.json]

Fails where the worker's resident memory grows by more than 5 MiB over the second half, and where Redis, once
results have expired and RQ's registries were cleaned, holds more keys or memory than after the first jobs.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from redis import Redis
from rq import Queue
from rq.registry import clean_registries

sys.path.insert(0, str(Path(__file__).parents[2]))

from ops.bench import environment, model, proc, processes
from ops.bench.measure import RUN_S, warm_up
from ops.bench.scenarios import TensorqTiles

from tensorq.embedded import EmbeddedRedis
from tensorq.keys import DONE

WINDOW_JOBS = 10_000
PRINT_JOBS = 20_000
RESULT_TTL_S = 15
MOST_GROWTH_BYTES = 5 * 2**20
MOST_MORE_KEYS = 3
MOST_MORE_REDIS_BYTES = 2 * 2**20
SETTLED_S, SETTLE_LIMIT_S = 2.0, 120.0
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


def settle(redis: Redis) -> tuple[int, int]:
    """Waits until what was kept for a while is gone, and cleans RQ's registries as its workers do.

    Returns:
        Redis's keys, and the bytes of its data: without the table of all keys, which shrinks late, and
        without completion lists, which are bounded and live for an hour.
    """
    give_up = time.monotonic() + SETTLE_LIMIT_S
    time.sleep(RESULT_TTL_S + 1)
    keys, since = redis.dbsize(), time.monotonic()
    while time.monotonic() < min(since + SETTLED_S, give_up):
        time.sleep(0.1)
        clean_registries(Queue(model.BATCHED, connection=redis))
        if redis.dbsize() != keys:
            keys, since = redis.dbsize(), time.monotonic()
    hints = sum(int(redis.memory_usage(key) or 0) for key in redis.scan_iter(DONE + "*", count=1000))
    return int(keys), int(redis.info("memory")["used_memory_dataset"]) - hints


def run(
    scenario: TensorqTiles, jobs: int, redis: Redis, log: Path
) -> tuple[list[Sample], list[tuple[int, int]]]:
    """Runs jobs in windows; returns a sample of each, and what Redis held settled, at first and at last."""
    samples: list[Sample] = []
    settled: list[tuple[int, int]] = []
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
            if done == WINDOW_JOBS:
                settled.append(settle(redis))
        settled.append(settle(redis))
    return samples, settled


def judge(samples: Sequence[Sample], settled: Sequence[tuple[int, int]]) -> list[str]:
    """Prints how much each grew; returns what grew too much."""
    half = samples[len(samples) // 2 - 1 :]
    jobs = [sample.jobs for sample in half]
    for name in ("worker", "client", "redis"):
        slope = np.polyfit(jobs, [getattr(sample, name) for sample in half], 1)[0]
        print(f"{name}: {slope:+.1f} bytes a job over the second half")
    grown = half[-1].worker - half[0].worker
    (keys, used), (last_keys, last_used) = settled
    more_keys, more_bytes = last_keys - keys, last_used - used
    print(f"worker: {grown / MIB:+.2f} MiB over the second half, at most {MOST_GROWTH_BYTES // MIB} allowed")
    print(f"redis, settled: {keys} keys after the first {WINDOW_JOBS:,} jobs, {last_keys} at the end")
    print(
        f"redis, settled: {more_bytes / MIB:+.2f} MiB of data, at most {MOST_MORE_REDIS_BYTES // MIB} allowed"
    )
    limits = {
        "the worker's memory": grown > MOST_GROWTH_BYTES,
        "Redis's key count": more_keys > MOST_MORE_KEYS,
        "Redis's memory": more_bytes > MOST_MORE_REDIS_BYTES,
    }
    return [what for what, exceeded in limits.items() if exceeded]


def write(
    path: Path, machine: dict[str, Any], samples: Sequence[Sample], settled: Sequence[tuple[int, int]]
) -> None:
    """Writes the JSON file; memory in bytes."""
    kept = [asdict(sample) for sample in samples if sample.jobs % PRINT_JOBS == 0]
    content = {"machine": machine, "samples": kept, "redis_keys_and_bytes_settled": settled}
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--jobs", type=int, default=200_000)
    parser.add_argument("--out", type=Path, default=Path("out/bench/memory.json"))
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
        machine = environment.describe(redis)
        scenario = TensorqTiles(server.url, repository, model.BATCHED, "tensorq, tiles to 64", RESULT_TTL_S)
        samples, settled = run(scenario, options.jobs, redis, folder / "worker.log")
        scenario.close()
    write(options.out, machine, samples, settled)
    if grown := judge(samples, settled):
        raise SystemExit(f"grows: {', '.join(grown)}")


if __name__ == "__main__":
    main()
