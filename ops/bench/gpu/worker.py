"""Measures a worker end to end on a real GPU: clients, Redis and `tensorq worker`; prints JSON.

python3.11 ops/bench/gpu/worker.py --plans DIR --models rec resnet18 --seconds 8

DIR holds NAME.plan, and NAME.plan.json where there is a sidecar. --repository DIR serves a model repository
as it is instead. Each model takes a worker of its own and some five seconds more than --seconds.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import mean
from typing import Any, cast

ROOT = Path(__file__).resolve().parents[3]
PARTS = [str(ROOT / part) for part in ("", "producer", "engines", "worker")]
sys.path[:0] = PARTS

from ops.bench import commands, proc, processes  # noqa: E402
from ops.bench.gpu import clients  # noqa: E402
from redis import Redis  # noqa: E402

import tensorq  # noqa: E402
from tensorq import ModelState, keys  # noqa: E402
from tensorq.embedded import EmbeddedRedis  # noqa: E402

NAME = "gpu-bench"
READY_S = 60.0
WARM_S = 2.0
MIB = 1024 * 1024
START = "import sys; sys.setswitchinterval({}); from tensorq_worker.cli import main; main()"
STATS = ("jobs", "rows", "tiles", "padding")


def main() -> None:
    options = _parse()
    processes.end_on_sigterm()
    with tempfile.TemporaryDirectory(prefix="tensorq-bench-") as scratch:
        repository = options.repository or Path(scratch, "models")
        found: dict[str, Any] = {}
        for name in options.models:
            if options.repository is None:
                _write(repository, options.plans, name)
            try:
                found[name] = measure(repository, name, options, Path(scratch))
            except (Exception, SystemExit) as exc:
                found[name] = {"error": f"{type(exc).__name__}: {exc}"}
            print(f"{name}: {json.dumps(found[name])}", file=sys.stderr, flush=True)
    text = json.dumps(found, indent=1) + "\n"
    if options.out is None:
        sys.stdout.write(text)
    else:
        options.out.write_text(text, encoding="utf-8")


def measure(repository: Path, model: str, options: argparse.Namespace, scratch: Path) -> dict[str, Any]:
    """Serves one model to client processes for a while; returns rates and where time went."""
    command = ["-c", START.format(options.switch_ms / 1000), "worker", model, "--name", NAME]
    command += ["--models", str(repository)]
    command += ["--lanes", str(options.lanes), "--result-ttl", "3"]
    environment = {"PYTHONPATH": os.pathsep.join([*PARTS, os.environ.get("PYTHONPATH", "")])}
    with (
        EmbeddedRedis(config={"maxmemory-policy": "noeviction"}) as server,
        Redis.from_url(server.url) as redis,
        processes.worker([*command, "--redis", server.url], environment, scratch / "worker.log") as running,
    ):
        _wait_until_served(server.url, model, running)
        redis_pid = int(cast("dict[str, Any]", redis.info("server"))["process_id"])
        begin = time.time() + WARM_S
        end = begin + options.seconds
        context = multiprocessing.get_context("spawn")
        queue = context.Queue()
        arguments = (server.url, model, options.rows, options.window, begin, end, queue)
        pumps = [
            context.Process(target=clients.pump, args=arguments, daemon=True) for _ in range(options.clients)
        ]
        for pump in pumps:
            pump.start()
        time.sleep(max(begin - time.time(), 0))
        commands.watch(redis)
        with _utilization() as gpu:
            before = _look(redis, model, running.pid, redis_pid)
            time.sleep(max(end - time.time(), 0))
            after = _look(redis, model, running.pid, redis_pid)
        by_command = commands.by_command(redis)
        by_script = commands.by_script(redis)
        counts = [queue.get(timeout=60) for _ in pumps]
        for pump in pumps:
            pump.join(10)
        running.expect_alive()
        running.stop()
    if faults := [count for count in counts if isinstance(count, str)]:
        raise SystemExit(f"a client failed: {faults[0]}\n{(scratch / 'worker.log').read_text()[-1500:]}")
    return {
        "rows_a_job": options.rows,
        "clients": options.clients,
        "lanes": options.lanes,
        "switch_ms": options.switch_ms,
        **_rates(counts, options.seconds),
        **_worker(before, after),
        "gpu_utilization_percent": round(mean(gpu), 1) if gpu else None,
        "redis_us_a_second": {
            name: round(cost.us / options.seconds)
            for name, cost in [*list(by_command.items())[:5], *list(by_script.items())[:4]]
        },
    }


def _rates(counts: list[dict[str, Any]], seconds: float) -> dict[str, Any]:
    total = {key: sum(count[key] for count in counts) for key in counts[0]}
    return {
        "rows_s": round(total["rows"] / seconds, 1),
        "jobs_s": round(total["jobs"] / seconds, 1),
        "in_mib_s": round(total["in_bytes"] / MIB / seconds, 1),
        "out_mib_s": round(total["out_bytes"] / MIB / seconds, 1),
        "client_cores": round(total["cpu_s"] / seconds, 2),
        "clients_waiting_share": round(total["waited_s"] / seconds / len(counts), 3),
    }


def _worker(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    wall = after["at"] - before["at"]
    tiles, rows, padding = (after[key] - before[key] for key in ("tiles", "rows", "padding"))
    threads = {tid: (cpu - before["threads"].get(tid, 0.0)) / wall for tid, cpu in after["threads"].items()}
    others = sorted((share for tid, share in threads.items() if tid != after["main"]), reverse=True)
    return {
        "tiles_s": round(tiles / wall, 1),
        "rows_a_tile": round(rows / tiles, 2) if tiles else None,
        "padding_share": round(padding / (rows + padding), 3) if rows else None,
        "engine_busy_share": round((after["busy_s"] - before["busy_s"]) / wall, 3),
        "worker_main_thread_cores": round(threads.get(after["main"], 0.0), 2),
        "worker_other_threads_cores": [round(share, 2) for share in others[:4]],
        "redis_cores": round((after["redis_cpu_s"] - before["redis_cpu_s"]) / wall, 2),
    }


def _look(redis: Redis, model: str, worker_pid: int, redis_pid: int) -> dict[str, Any]:
    stats = cast("list[bytes | None]", redis.hmget(keys.stats(model), STATS))
    busy = cast("bytes | None", redis.hget(f"rq:worker:{NAME}", "total_working_time"))
    return {
        "at": time.perf_counter(),
        **{name: int(value or 0) for name, value in zip(STATS, stats, strict=True)},
        "busy_s": float(busy or 0),
        "main": worker_pid,
        "threads": proc.thread_cpu_s(worker_pid),
        "redis_cpu_s": proc.cpu_s(redis_pid),
    }


@contextmanager
def _utilization() -> Iterator[list[float]]:
    """Samples what nvidia-smi calls utilization: the share of time with a kernel running."""
    found: list[float] = []
    if shutil.which("nvidia-smi") is None:
        yield found
        return
    command = ["nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits", "-lms", "250"]
    with subprocess.Popen([*command, "-i", "0"], stdout=subprocess.PIPE, text=True) as sampler:
        try:
            yield found
        finally:
            sampler.terminate()
            assert sampler.stdout is not None
            found += [float(line) for line in sampler.stdout.read().split() if line.isdigit()]


def _wait_until_served(url: str, model: str, running: processes.Worker) -> None:
    deadline = time.monotonic() + READY_S
    with tensorq.Client(url) as client:
        while time.monotonic() < deadline:
            running.expect_alive()
            if any(info.name == model and info.state is ModelState.READY for info in client.models()):
                return
            time.sleep(0.1)
    raise SystemExit(f"no worker served {model} within {READY_S:.0f} s")


def _write(repository: Path, plans: Path, name: str) -> None:
    folder = repository / name
    folder.mkdir(parents=True)
    for ending in ("", ".json"):
        source = plans / f"{name}.plan{ending}"
        if source.exists():
            shutil.copyfile(source, folder / f"model.plan{ending}")


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--plans", type=Path, help="folder of NAME.plan")
    where.add_argument("--repository", type=Path, help="model repository")
    parser.add_argument("--models", nargs="+", default=["rec", "resnet18"])
    parser.add_argument("--seconds", type=float, default=8.0, help="measured, for each model")
    parser.add_argument("--clients", type=int, default=4, help="client processes")
    parser.add_argument("--rows", type=int, default=1, help="rows of a job")
    parser.add_argument("--window", type=int, default=256, help="rows unanswered, for each client")
    parser.add_argument("--lanes", type=int, default=1)
    parser.add_argument(
        "--switch-ms", type=float, default=5.0, help="how long a worker's thread keeps the GIL from others"
    )
    parser.add_argument("--out", type=Path, help="file for the JSON; default is standard output")
    return parser.parse_args()


if __name__ == "__main__":
    main()
