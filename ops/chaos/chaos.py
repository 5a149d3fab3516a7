"""Chaos: does each job get one right result, whatever dies, stops or is poison meanwhile?

    python ops/chaos/chaos.py [--minutes 5] [--jobs 20000] [--seed 1] [--out out/chaos/chaos.json]

A redis-server that has every write on disk before it answers, two to four workers under a supervisor, three
models, a producer, and stock RQ's maintenance and `rq info` beside them. Workers are killed, stopped and
continued, and ended; Redis is killed and ended, and started again. Jobs, faults and their times follow from
the seed. At the end every job is looked at, its result by content. Exits with 1 where one was lost, is wrong,
has two results, failed without having been poison, or was poison and failed with another reason than its own.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from ops.bench import environment, processes
from ops.chaos import report
from ops.chaos.run import Setting, run
from ops.chaos.server import Server
from ops.chaos.worker import BREAKS


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--minutes", type=float, default=5.0, help="length, without what is left to drain")
    parser.add_argument("--jobs", type=int, default=20_000)
    parser.add_argument("--seed", type=int, help="of jobs and faults; default a random one, which is printed")
    parser.add_argument("--workers", type=int, default=4, help="workers at most; some are always away")
    parser.add_argument("--tile-ms", type=float, default=50.0, help="how long every tile takes")
    parser.add_argument("--drain-s", type=float, default=60.0, help="how long to wait for the last jobs")
    parser.add_argument("--break", dest="broken", choices=BREAKS, default="", help="take a protection away")
    parser.add_argument("--server", help="the server program, such as valkey-server")
    parser.add_argument("--keep", type=Path, help="where to copy the logs to if the run is red")
    parser.add_argument("--out", type=Path, default=Path("out/chaos/chaos.json"))
    options = parser.parse_args()
    if options.jobs < 200 or options.minutes * 60 < 10:
        parser.error("at least 200 jobs and 10 seconds, or nothing meets anything")
    return options


def main() -> None:
    options = parsed()
    processes.end_on_sigterm()
    seed = options.seed if options.seed is not None else random.randrange(10**6)
    setting = Setting(
        seed=seed,
        jobs=options.jobs,
        seconds=options.minutes * 60,
        drain_s=options.drain_s,
        slots=options.workers,
        tile_s=options.tile_ms / 1000,
        broken=options.broken,
        server=options.server,
    )
    print(f"seed {seed}", flush=True)
    with tempfile.TemporaryDirectory(prefix="tq", dir="/tmp") as name:
        folder = Path(name)
        with Server(folder, options.server) as server, server.client() as redis:
            machine = environment.describe(redis)
        outcome = run(setting, folder)
        found = report.problems(outcome)
        if found and options.keep is not None:
            shutil.copytree(folder, options.keep, ignore=shutil.ignore_patterns("*.sock"), dirs_exist_ok=True)
    report.print_outcome(setting, outcome)
    report.write(options.out, report.as_json(setting, outcome, machine))
    if found:
        raise SystemExit("\n".join(["", "RED:", *found]))
    print("\ngreen")


if __name__ == "__main__":
    main()
