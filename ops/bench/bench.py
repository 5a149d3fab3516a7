"""Throughput of tensorq, of stock RQ, and of a bare loop over Redis: one model, 512-byte jobs, one server.

    python ops/bench/bench.py [--jobs 30000] [--repeats 3] [--out out/bench/throughput.json] [--profile]

Every worker is a process of its own and runs its model on one thread; this process is the client. The
scenarios take turns, each with a fresh worker on an empty redis-server without persistence on a unix socket.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from redis import Redis

sys.path.insert(0, str(Path(__file__).parents[2]))

from ops.bench import environment, hotspots, model, processes, report
from ops.bench.measure import Run, measure
from ops.bench.scenarios import Pipelined, Scenario, StockRq, TensorqTiles

from tensorq.embedded import EmbeddedRedis

# Jobs of a run, as a share of --jobs: the slow ones would take minutes.
SHARES = {model.BATCHED: 1.0, model.SINGLE: 0.2, StockRq.key: 0.02, Pipelined.key: 1.0}


def scenarios(url: str, repository: Path) -> list[Scenario]:
    return [
        TensorqTiles(url, repository, model.BATCHED, "tensorq, tiles to 64"),
        TensorqTiles(url, repository, model.SINGLE, "tensorq, tiles of 1"),
        StockRq(url, repository),
        Pipelined(url, repository),
    ]


def compare(server: EmbeddedRedis, redis: Redis, folder: Path, options: argparse.Namespace) -> None:
    """Runs all scenarios in turn, prints the table and writes the JSON file."""
    started = time.perf_counter()
    machine = environment.describe(redis)
    everyone = [
        s for s in scenarios(server.url, folder / "models") if not options.only or s.key in options.only
    ]
    runs: dict[str, list[Run]] = {scenario.key: [] for scenario in everyone}
    for _ in range(options.repeats):
        for scenario in everyone:
            jobs = max(1, int(options.jobs * SHARES[scenario.key]))
            runs[scenario.key].append(measure(scenario, jobs, redis, server.pid, folder / "worker.log"))
    for scenario in everyone:
        scenario.close()
    rows = {
        scenario.key: report.Row(scenario.key, scenario.name, runs[scenario.key]) for scenario in everyone
    }
    stock, ceiling, batched = (rows.get(key) for key in (StockRq.key, Pipelined.key, model.BATCHED))
    print(", ".join(f"{name} {number}" for name, number in machine["versions"].items()))
    print(f"{machine['cores']} cores, {machine['cpu']}, load {machine['load_1min']} before\n")
    report.print_table(list(rows.values()), stock, ceiling)
    aims = report.aims(batched, stock, ceiling) if batched is not None else []
    report.print_aims(aims)
    report.write(options.out, machine, list(rows.values()), aims)
    print(f"{time.perf_counter() - started:.0f} s in all; figures in {options.out}")


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--jobs", type=int, default=30_000, help="jobs of a run of the fast scenarios")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", action="append", choices=list(SHARES), help="run this scenario; repeatable")
    parser.add_argument("--out", type=Path, default=Path("out/bench/throughput.json"))
    parser.add_argument("--profile", action="store_true", help="say where tensorq's time goes instead")
    return parser.parse_args()


def main() -> None:
    options = parsed()
    processes.end_on_sigterm()
    with (
        tempfile.TemporaryDirectory() as name,
        EmbeddedRedis() as server,
        Redis.from_url(server.url) as redis,
    ):
        folder = Path(name)
        model.write_repository(folder / "models")
        if options.profile:
            hotspots.show(server, redis, folder, options.jobs)
        else:
            compare(server, redis, folder, options)


if __name__ == "__main__":
    main()
