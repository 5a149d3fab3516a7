"""Residency on a real GPU: the article's experiment, and what must hold of memory, loads and sharing.

    python3.11 ops/bench/gpu/residency/bench.py --models DIR --out FILE.json

DIR is a model repository as tests/gpu/build_models.py writes it, with plans: tiny_cnn, mid_cnn, resnet18,
rec, det, cls; tiny_cnn-b4, -b8, -b16, -s64, -s112; resnet18-uint8. About four minutes in all. FILE.json is
written after every part, and FILE-inputs.json for the simulation. Fails where a stated bound is broken.
"""

from __future__ import annotations

import argparse
import faulthandler
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[4]
sys.path[:0] = [str(ROOT / part) for part in ("", "producer", "engines", "worker")]

from ops.bench.gpu.bench import environment  # noqa: E402
from ops.bench.gpu.residency import activation, articles, churn, sources, timeline, together  # noqa: E402
from ops.bench.gpu.residency.report import render  # noqa: E402

LEAST_CYCLES_S, MOST_CYCLES_S = 60.0, 150.0

Part = Callable[[argparse.Namespace, dict[str, Any]], dict[str, Any]]

PARTS: dict[str, Part] = {
    "articles": lambda options, _: articles.measure(options.models),
    "activation": lambda options, _: activation.measure(options.models),
    "timeline": lambda options, _: timeline.measure(options.models),
    "together": lambda options, _: together.measure(options.models, options.seconds, options.rounds),
    "cycles": lambda options, found: churn.measure(
        options.models,
        found["environment"],
        churn.Counts(options.cycles, options.two_lane_cycles, _left_s(options, found)),
    ),
    "sources": lambda options, _: sources.measure(options.models, options.onnx),
}


def main(arguments: Sequence[str] | None = None) -> int:
    options = parsed(arguments)
    if options.limit_s:
        # A hang must not cost what was found: the file is there, and the machine is lent by the minute.
        faulthandler.dump_traceback_later(options.limit_s + 30, exit=True)
    started = time.perf_counter()
    found: dict[str, Any] = {"environment": environment(), "seconds": {}, "faults": []}
    for name in options.only:
        began = time.perf_counter()
        try:
            part = PARTS[name](options, found)
        except Exception as exc:
            part = {"faults": [f"{name}: {type(exc).__name__}: {exc}"]}
        found["faults"] += part.pop("faults", [])
        inputs = part.pop("residency_inputs", None)
        found[name] = part
        found["seconds"][name] = round(time.perf_counter() - began, 1)
        print(f"{name}: {found['seconds'][name]} s", file=sys.stderr, flush=True)
        _write(options.out, found)
        if inputs is not None:
            _write(options.out.with_name(f"{options.out.stem}-inputs.json"), inputs)
    found["seconds"]["all"] = round(time.perf_counter() - started, 1)
    _write(options.out, found)
    faulthandler.cancel_dump_traceback_later()
    print(render(found))
    return 1 if found["faults"] else 0


def _left_s(options: argparse.Namespace, found: dict[str, Any]) -> float:
    """Returns what cycles may take, apart from what they take before they begin."""
    spent_s: float = sum(found["seconds"].values())
    left_s: float = options.limit_s - spent_s - 20
    return max(LEAST_CYCLES_S, min(MOST_CYCLES_S, left_s))


def _write(out: Path, found: Any) -> None:
    out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def _parts(text: str) -> list[str]:
    names = text.split(",")
    if unknown := sorted(set(names) - set(PARTS)):
        raise argparse.ArgumentTypeError(f"got {', '.join(unknown)}, expected of {', '.join(PARTS)}")
    return names


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", type=Path, required=True, help="model repository with plans")
    parser.add_argument("--out", type=Path, required=True, help="file for the JSON")
    parser.add_argument(
        "--only", type=_parts, default=list(PARTS), help=f"parts, by commas; default: {','.join(PARTS)}"
    )
    parser.add_argument("--onnx", type=Path, help="folder of rec.onnx, det.onnx, cls.onnx, for sources")
    parser.add_argument("--seconds", type=float, default=2.0, help="of each feeding in together")
    parser.add_argument("--rounds", type=int, default=3, help="of together")
    parser.add_argument("--cycles", type=int, default=500, help="on one lane")
    parser.add_argument("--two-lane-cycles", type=int, default=100)
    parser.add_argument(
        "--limit-s",
        type=float,
        default=300.0,
        help="for all; 30 s later the process is ended; 0 for no limit",
    )
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
