"""Where the time goes with tiles to 64: Redis's commands and scripts, the worker's functions by thread."""

from __future__ import annotations

import marshal
import sys
from pathlib import Path
from typing import Any

from ops.bench import commands, model
from ops.bench.commands import Cost
from ops.bench.measure import timed, warm_up
from ops.bench.processes import worker
from ops.bench.scenarios import TensorqTiles
from redis import Redis

from tensorq.embedded import EmbeddedRedis

TOP = 18
Stats = dict[tuple[str, int, str], tuple[int, int, float, float, Any]]


def show(server: EmbeddedRedis, redis: Redis, folder: Path, jobs: int) -> None:
    """Runs once watching Redis and once under a profiler, and prints what took longest."""
    scenario = TensorqTiles(server.url, folder / "models", model.BATCHED, "tensorq, tiles to 64")
    _watch_redis(scenario, server, redis, folder, jobs)
    if sys.version_info >= (3, 12):
        # From there on one profiler sees all threads' calls and cannot tell whose they are.
        print("the worker's functions by thread need Python 3.11")
    else:
        _profile(scenario, server, redis, folder, jobs)
    scenario.close()


def _watch_redis(
    scenario: TensorqTiles, server: EmbeddedRedis, redis: Redis, folder: Path, jobs: int
) -> None:
    redis.flushall()
    with worker(scenario.command(), scenario.environment(), folder / "worker.log") as running:
        warm_up(scenario, running)
        commands.watch(redis)
        run = timed(scenario, jobs, running.pid, server.pid)
        by_command, by_script = commands.by_command(redis), commands.by_script(redis)
    print(f"{jobs} jobs, {run.jobs_per_s:,.0f} jobs/s ; ", end="")
    print(f"CPU us a job: client {run.client_us:.0f}, worker {run.worker_us:.0f}, redis {run.redis_us:.0f}")
    print(f"{run.tiles.tiles} tiles, {run.rows_per_tile:.1f} rows a tile, {run.tiles.padding} padding rows")
    _print_costs(f"scripts, calls of {commands.SLOW_US} us and more", by_script, jobs)
    _print_costs("commands (those inside scripts count in evalsha too)", by_command, jobs)


def _print_costs(title: str, costs: dict[str, Cost], jobs: int) -> None:
    print(f"\n{title:<54}{'calls':>9}{'us a call':>11}{'us a job':>10}")
    for name, cost in list(costs.items())[:TOP]:
        print(f"  {name:<52}{cost.calls:>9,}{cost.us / cost.calls:>11.1f}{cost.us / jobs:>10.2f}")


def _profile(scenario: TensorqTiles, server: EmbeddedRedis, redis: Redis, folder: Path, jobs: int) -> None:
    redis.flushall()
    file = folder / "profile.marshal"
    command = ["-m", "ops.bench.profiled_worker", str(file), *scenario.arguments()]
    with worker(command, scenario.environment(), folder / "worker.log") as running:
        warm_up(scenario, running)
        run = timed(scenario, jobs, running.pid, server.pid)
        running.stop()
    print(
        f"\nthe worker under cProfile, {run.jobs_per_s:,.0f} jobs/s; small functions weigh more than they do"
    )
    threads: dict[str, Stats] = marshal.loads(file.read_bytes())
    for name, stats in sorted(threads.items(), key=lambda item: -_total_s(item[1])):
        if (total_s := _total_s(stats)) > 0.01:
            print(f"\n{name}: {1e6 * total_s / jobs:.1f} us of CPU a job: own, and with what is called")
            _print_functions(stats, jobs)


def _total_s(stats: Stats) -> float:
    return sum(own_s for _, _, own_s, _, _ in stats.values())


def _print_functions(stats: Stats, jobs: int) -> None:
    for (file, line, function), entry in sorted(stats.items(), key=lambda item: -item[1][2])[:TOP]:
        _, calls, own_s, total_s, _ = entry
        place = function if file == "~" else f"{'/'.join(Path(file).parts[-2:])}:{line} {function}"
        own_us, total_us = 1e6 * own_s / jobs, 1e6 * total_s / jobs
        print(f"  {own_us:>7.2f}{total_us:>9.2f}{calls:>10,} calls  {place}")
