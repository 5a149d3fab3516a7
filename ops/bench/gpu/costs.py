"""Measures what tiles cost on a real GPU, and runs the planner's tilings there against simpler ones.

    python3.11 ops/bench/gpu/costs.py --plans DIR --out ops/bench/results/h200-costs-DATE.json

DIR holds NAME.plan for any of the names below. A few minutes in all. Fails where a tiling of the planner took
more than 1.03 times the better of the two simpler ones.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / part) for part in ("", "producer", "engines", "worker")]

from ops.bench.gpu.bench import environment  # noqa: E402
from ops.bench.gpu.tilings import Rival, TilingRun, run_rivals  # noqa: E402

from tensorq_engines import measure_costs  # noqa: E402
from tensorq_engines.base.admission import Shapes  # noqa: E402
from tensorq_engines.tensorrt.engine import TensorRtEngine  # noqa: E402
from tensorq_engines.tensorrt.lane import TensorRtLane  # noqa: E402

# Lengths of the free axes, in order; none: those that the first profile is tuned for.
FREE: dict[str, tuple[tuple[int, ...], ...]] = {
    "resnet18": ((),),
    "rec": ((160,), (320,), (640,), (960,)),
    "tiny": ((),),
    "mid": ((),),
    "det": ((),),
}
ROWS = (3, 5, 9, 13, 20, 33, 47, 63, 100, 150, 200)
MOST_RATIO = 1.03


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--plans", type=Path, required=True, help="folder of NAME.plan")
    parser.add_argument("--out", type=Path, help="file for the JSON; default is standard output")
    parser.add_argument("--models", nargs="+", choices=FREE, default=list(FREE), help="default: all")
    parser.add_argument("--rows", nargs="+", type=int, default=ROWS, help="whose tilings are run")
    parser.add_argument("--budget-s", type=float, default=1.0, help="for the tilings of one number of rows")
    options = parser.parse_args(arguments)
    names = [name for name in options.models if (options.plans / f"{name}.plan").exists()]
    if not names:
        parser.error(f"{options.plans} has no plan of {', '.join(options.models)}")
    found: dict[str, Any] = {"environment": environment(), "costs_ms": {}, "executed": {}}
    faults = []
    for name in names:
        with TensorRtEngine(name, options.plans / f"{name}.plan") as engine, TensorRtLane() as lane:
            for lengths in FREE[name]:
                row_shapes = shapes_of_rows(engine, lengths)
                shape = ",".join("x".join(map(str, one)) for one in row_shapes.values())
                costs_ms = measure_costs(lane, engine, row_shapes)
                _say(name, shape, "costs", {size: round(cost, 4) for size, cost in costs_ms.items()})
                run = TilingRun(lane, engine, row_shapes, options.budget_s)
                executed = {rows: run_rivals(run, costs_ms, rows) for rows in options.rows}
                run.close()
                faults += _faults(name, shape, executed)
                by_size = {str(size): round(cost, 5) for size, cost in costs_ms.items()}
                found["costs_ms"].setdefault(name, {})[shape] = by_size
                found["executed"].setdefault(name, {})[shape] = {
                    str(rows): {way: rival.to_dict() for way, rival in rivals.items()}
                    for rows, rivals in executed.items()
                }
                _write(options.out, found)
    if options.out is None:
        print(json.dumps(found, indent=1))
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


def shapes_of_rows(engine: TensorRtEngine, lengths: Sequence[int]) -> Shapes:
    """Returns the shape of a row of each input.

    Args:
        engine: its first profile gives what ``lengths`` does not.
        lengths: of the free axes, in order, over all inputs.
    """
    ranges = {item.name: item for item in engine.profiles[0]} if engine.profiles else {}
    left, found = list(lengths), {}
    skip = 1 if engine.signature.batch_axis == 0 else 0
    for spec in engine.signature.inputs:
        row = []
        for axis, want in list(enumerate(spec.shape))[skip:]:
            if not isinstance(want, int):
                known = ranges[spec.name]
                # A free axis that the profile pins is none to choose.
                chosen = left and known.min[axis] < known.max[axis]
                want = left.pop(0) if chosen else known.opt[axis]
            row.append(want)
        found[spec.name] = tuple(row)
    return found


def _faults(name: str, shape: str, executed: Mapping[int, Mapping[str, Rival]]) -> list[str]:
    faults = []
    for rows, rivals in executed.items():
        ratio = rivals["planner"].span_ms / min(rivals["pad_up"].span_ms, rivals["trim"].span_ms)
        words = {way: f"{rival.span_ms:.3f} ms {list(rival.sizes)}" for way, rival in rivals.items()}
        _say(name, shape, f"{rows} rows, ratio {ratio:.3f}", words)
        if ratio > MOST_RATIO:
            faults.append(f"{name} {shape}, {rows} rows: {ratio:.3f} times the better of the simple ways")
    return faults


def _write(out: Path | None, found: Mapping[str, Any]) -> None:
    """After each table: a run may be cut short."""
    if out is not None:
        out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def _say(*words: object) -> None:
    print(*words, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
