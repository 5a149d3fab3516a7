"""Measuring one run of a scenario: time, CPU of the three processes, tiles, and that results are right."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, replace
from pathlib import Path

from ops.bench import model, proc
from ops.bench.processes import Worker, worker
from ops.bench.scenarios import Scenario, Tiles
from redis import Redis

RUN_S = 90.0


@dataclass(frozen=True, slots=True)
class Run:
    """One run: first submit to last result in the client's hands.

    Attributes:
        jobs: how many.
        seconds: from the first submit to the last result.
        client_us, worker_us, redis_us: CPU microseconds a job of each process.
        tiles: what the worker ran; nothing where it runs job by job.
        submit_s: seconds that the client took to store as many jobs, without a worker beside it.
    """

    jobs: int
    seconds: float
    client_us: float
    worker_us: float
    redis_us: float
    tiles: Tiles
    submit_s: float = 0.0

    @property
    def jobs_per_s(self) -> float:
        return self.jobs / self.seconds

    @property
    def submits_per_s(self) -> float:
        return self.jobs / self.submit_s

    @property
    def rows_per_tile(self) -> float:
        return self.tiles.rows / self.tiles.tiles if self.tiles.tiles else 1.0


def measure(scenario: Scenario, jobs: int, redis: Redis, redis_pid: int, log: Path) -> Run:
    """Runs a scenario once on an empty server, with a worker of its own.

    Starting the worker, warming it up and ending it are outside of what is measured.

    Raises:
        SystemExit: a result is wrong or missing, or the worker ended.
    """
    redis.flushall()
    with worker(scenario.command(), scenario.environment(), log) as running:
        warm_up(scenario, running)
        run = timed(scenario, jobs, running.pid, redis_pid)
    x = model.inputs(jobs)
    started = time.perf_counter()
    scenario.submit(x)
    return replace(run, submit_s=time.perf_counter() - started)


def warm_up(scenario: Scenario, running: Worker) -> None:
    """Waits for the worker and runs a few jobs, which load what is loaded by first use."""
    scenario.wait_ready(running.expect_alive)
    x = model.inputs(scenario.warm_jobs, seed=1)
    model.check(x, scenario.collect(scenario.submit(x), RUN_S), f"{scenario.name}, warm-up")


def timed(scenario: Scenario, jobs: int, worker_pid: int, redis_pid: int) -> Run:
    """Submits jobs, takes their results, and checks every one afterwards."""
    x = model.inputs(jobs)
    pids = (os.getpid(), worker_pid, redis_pid)
    tiles_before = scenario.tiles()
    cpu_before = [proc.cpu_s(pid) for pid in pids]
    started = time.perf_counter()
    rows = scenario.collect(scenario.submit(x), RUN_S)
    seconds = time.perf_counter() - started
    cpu_us = [1e6 * (proc.cpu_s(pid) - before) / jobs for pid, before in zip(pids, cpu_before, strict=True)]
    tiles = scenario.tiles() - tiles_before
    model.check(x, rows, scenario.name)
    client_us, worker_us, redis_us = cpu_us
    return Run(jobs, seconds, client_us, worker_us, redis_us, tiles)
