"""One run: a server, workers, stock tools and a producer, with faults among them, and then the audit."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from ops.chaos import models, stock_tools
from ops.chaos.audit import Audit, audit, wait_until_ended
from ops.chaos.faults import Fault, What, plan_faults
from ops.chaos.fleet import ROOT, Fleet
from ops.chaos.producer import RESULT_TTL_S, Producer
from ops.chaos.recovery import Loss, Recovery, held_by
from ops.chaos.server import Server
from ops.chaos.work import MODELS, Work, plan_work
from redis.exceptions import RedisError

from tensorq import keys
from tensorq.names import model_queues

LEASE_S, BEAT_S = 3, 1
BUSY_WAIT_S = 1.0
FAULTS_SHARE = 0.85
POISON = "a poison job ended a worker"


@dataclass(frozen=True, slots=True)
class Setting:
    """What a run is told.

    Attributes:
        seed: of jobs and faults.
        jobs: how many.
        seconds: how long jobs are submitted and faults happen, nearly all of the run.
        drain_s: how long to wait, after that, for jobs that have not ended.
        slots: workers at most; those that were ended stay away for a while.
        tile_s: how long each tile takes.
        broken: a protection to take away, or empty.
        server: the server program; None for the first that is found.
    """

    seed: int
    jobs: int
    seconds: float
    drain_s: float
    slots: int
    tile_s: float
    broken: str
    server: str | None


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run came to."""

    planned: list[Work]
    verdict: Audit
    faults: Counter[str]
    losses: list[Loss]
    exits: Counter[str]
    unexpected: list[str]
    submits_repeated: int
    submit_errors: Counter[str]
    maintenance: int
    rq_info: int
    hot_finishes: int
    longest_outage_s: float
    seconds: float


class Chaos:
    """Lets faults happen, on the calling thread.

    Args:
        server: Redis.
        fleet: the workers.
        recovery: told of every worker that is lost.
    """

    def __init__(self, server: Server, fleet: Fleet, recovery: Recovery) -> None:
        self._server = server
        self._fleet = fleet
        self._recovery = recovery
        self._waking: list[threading.Timer] = []
        self.done: Counter[str] = Counter()
        self.longest_outage_s = 0.0

    def unleash(self, faults: list[Fault], started: float) -> None:
        """Does all of them, each at its time."""
        for fault in faults:
            time.sleep(max(0.0, started + fault.at_s - time.monotonic()))
            if fault.what in (What.RESTART, What.CRASH):
                self._restart(fault)
            else:
                self._signal(fault)
        for timer in self._waking:
            timer.join()

    def _restart(self, fault: Fault) -> None:
        since = time.monotonic()
        self._server.end(kill=fault.what is What.CRASH)
        time.sleep(fault.for_s)
        self._server.start()
        self.longest_outage_s = max(self.longest_outage_s, time.monotonic() - since)
        self.done[fault.what] += 1

    def _signal(self, fault: Fault) -> None:
        if fault.busy:
            self._wait_busy(fault.slot)
        sig = {What.KILL: signal.SIGKILL, What.TERM: signal.SIGTERM}.get(fault.what, signal.SIGSTOP)
        name = self._fleet.send(fault.slot, sig, fault.for_s)
        if name is None:
            return
        self.done[fault.what] += 1
        if sig is signal.SIGSTOP:
            timer = threading.Timer(fault.for_s, self._fleet.send, (fault.slot, signal.SIGCONT))
            timer.start()
            self._waking.append(timer)
        if fault.what in (What.KILL, What.LONG_PAUSE):
            self._recovery.watch(name, fault.what)

    def _wait_busy(self, place: int) -> None:
        """Waits until the worker there holds jobs; a moment at most."""
        give_up = time.monotonic() + BUSY_WAIT_S
        with self._server.client() as redis:
            while time.monotonic() < give_up:
                try:
                    name = self._fleet.name(place)
                    if name is not None and held_by(redis, name):
                        return
                except RedisError:
                    return
                time.sleep(0.005)


def run(setting: Setting, folder: Path) -> Outcome:
    """Does one run in ``folder``, whose path must be short enough for a socket."""
    began = time.monotonic()
    span_s = setting.seconds * FAULTS_SHARE
    planned = plan_work(setting.seed, setting.jobs, span_s)
    faults = plan_faults(setting.seed, span_s, setting.slots, LEASE_S)
    repository = models.write_repository(folder / "models", setting.jobs)
    with Server(folder, setting.server) as server, Recovery(server) as recovery, _stock_tools(server.url):

        def died(name: str) -> None:
            recovery.watch(name, POISON)

        env = {"CHAOS_TILE_S": str(setting.tile_s), "CHAOS_BREAK": setting.broken}
        with Fleet(setting.slots, _command(server.url, repository), env, folder, died) as fleet:
            _wait_for_models(server, len(MODELS))
            chaos = Chaos(server, fleet, recovery)
            started = time.monotonic()
            with Producer(server, planned, started) as producer:
                chaos.unleash(faults, started)
                with server.client() as redis:
                    wait_until_ended(redis, planned, setting.drain_s + setting.seconds - span_s)
                    _wait_for(lambda: not recovery.open(), 10)
                    fleet.stop()
                    return Outcome(
                        planned,
                        audit(redis, planned),
                        chaos.done,
                        recovery.losses,
                        fleet.exits,
                        fleet.unexpected,
                        producer.repeated,
                        producer.errors,
                        int(redis.get(stock_tools.MAINTENANCE) or 0),
                        int(redis.get(stock_tools.INFO) or 0),
                        sum(int(redis.hget(keys.stats(model), "jobs") or 0) for model in MODELS),
                        chaos.longest_outage_s,
                        time.monotonic() - began,
                    )


def _command(url: str, repository: Path) -> list[str]:
    return [
        *(str(Path(__file__).with_name("worker.py")), "worker", "--redis", url, "--models", str(repository)),
        *("--threads", "1", "--lease-s", str(LEASE_S), "--beat-s", str(BEAT_S)),
        *("--result-ttl", str(RESULT_TTL_S)),
    ]


@contextmanager
def _stock_tools(url: str) -> Iterator[None]:
    queues = [queue for model in MODELS for queue in model_queues(model)]
    command = [sys.executable, "-m", "ops.chaos.stock_tools", url, *queues]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.kill()
        process.wait()


def _wait_for_models(server: Server, count: int) -> None:
    with server.client() as redis:
        _wait_for(lambda: cast(Any, redis.zcard(keys.MODELS)) == count, 60)


def _wait_for(met: Any, limit_s: float) -> bool:
    give_up = time.monotonic() + limit_s
    while not met():
        if time.monotonic() > give_up:
            return False
        time.sleep(0.05)
    return True
