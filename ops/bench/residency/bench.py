"""Six models, memory for three: tensorq's scheduler against first come, first served with plain LRU.

    python ops/bench/residency/bench.py [--jobs 10000] [--utilisation 0.7] [--json out/bench/residency.json]

A simulation on a virtual clock, with the scheduler, the planner and the account of memory that the worker
runs. The baseline serves the oldest job's model, loads it in line and evicts the least recently used; its
tiling is the same. Fails where a job is lost, where a queue waits longer than the scheduler's bound, or where
round robin takes more than a fifth of the baseline's loads.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))

from ops.bench.residency.compare import Pair, Setting, compare
from ops.bench.residency.inputs import read
from ops.bench.residency.simulation import Outcome
from ops.bench.residency.traffic import TRAFFICS

INPUTS = Path(__file__).parents[1] / "results" / "h200-residency-inputs-2026-11-30.json"
MIB = 2**20


def print_setting(setting: Setting, inputs: Path) -> None:
    print(f"{setting.jobs:,} jobs, lanes: {setting.lanes}; inputs: {inputs.name}")
    budget_mib = setting.budget_bytes / MIB
    print(
        f"budget: {budget_mib:,.0f} MiB, at most {setting.resident} of {len(setting.models)} models at once\n"
    )
    print(f"{'model':<12}{'MiB':>6}{'load ms':>9}{'row us':>8}{'bound ms':>10}  estimated")
    alone, bounds_ms = setting.residents(), setting.bounds_ms()
    for model in setting.models:
        alone.add(model.name, model.footprint)
        size_mib = alone.predict([model.name]).total_bytes / MIB
        print(f"{model.name:<12}{size_mib:>6.0f}{model.load_ms:>9.1f}{1000 * model.row_ms:>8.0f}", end="")
        print(f"{bounds_ms[model.name]:>10,.0f}  {', '.join(model.estimated)}".rstrip())
    print()


def print_table(pairs: Sequence[Pair]) -> None:
    print(f"{'':<23}{'':<12}{'loads':>7}{'evicted':>9}{'jobs/s':>9}{'busy':>6}", end="")
    print(f"{'age p50':>9}{'p99':>9}{'max':>9}{'makespan':>11}{'of bound':>10}")
    for pair in pairs:
        print(f"{pair.name:<23}", end="")
        print_row("first come", pair.baseline, pair.of_bound(pair.baseline))
        print(" " * 23, end="")
        print_row("tensorq", pair.aware, pair.of_bound(pair.aware))
    print(
        "\nage, makespan: ms; age: from a job's arrival until its last tile began; busy: the lanes' time in"
    )
    print("tiles; of bound: the worst queue's longest time without a tile, as a share of tensorq's bound")


def print_row(policy: str, outcome: Outcome, of_bound: float) -> None:
    print(f"{policy:<12}{outcome.loads:>7,}{outcome.evictions:>9,}{outcome.jobs_per_s:>9,.0f}", end="")
    print(f"{outcome.busy_share:>6.0%}{outcome.p50_ms:>9,.0f}{outcome.p99_ms:>9,.0f}", end="")
    print(f"{outcome.max_ms:>9,.0f}{outcome.makespan_ms:>11,.0f}{of_bound:>10.0%}")


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--jobs", type=int, default=10_000, help="jobs of a run")
    parser.add_argument("--utilisation", type=float, default=0.7, help="of the lanes, were all tiles full")
    parser.add_argument("--traffic", action="append", choices=list(TRAFFICS), help="only this; repeatable")
    parser.add_argument("--lanes", type=int, default=1)
    parser.add_argument("--dwell-floor-ms", type=float, default=100.0, help="the least stay after a load")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--inputs", type=Path, default=INPUTS, help="what the models cost")
    parser.add_argument("--json", type=Path, help="write all figures here")
    parser.add_argument("--without-ageing", action="store_true", help="see the bound broken")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the bench; returns the exit status."""
    options = parsed(arguments)
    setting = Setting(
        read(options.inputs),
        jobs=options.jobs,
        lanes=options.lanes,
        dwell_floor_s=options.dwell_floor_ms / 1000,
        ageing=not options.without_ageing,
        seed=options.seed,
    )
    print_setting(setting, options.inputs)
    pairs = [
        compare(setting, traffic, utilisation)
        for utilisation in (options.utilisation, None)
        for traffic in options.traffic or TRAFFICS
    ]
    print_table(pairs)
    problems = [problem for pair in pairs for problem in pair.problems()]
    print("\n".join(["", *problems]) if problems else "\nthe bound holds for every queue, and no job is lost")
    if options.json is not None:
        content = {"inputs": options.inputs.name, "pairs": [pair.to_dict() for pair in pairs]}
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
