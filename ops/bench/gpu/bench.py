"""Measures lanes on a real GPU and prints JSON; some ten seconds a model.

python3.11 ops/bench/gpu/bench.py --plans DIR --out FILE.json

DIR holds NAME.plan for any of the names below. Times are medians in microseconds.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / part) for part in ("", "producer", "engines", "worker")]

from ops.bench.gpu.pipeline import filling_and_running, two_lanes  # noqa: E402
from ops.bench.gpu.resident import resident  # noqa: E402
from ops.bench.gpu.tiles import graph_against_eager, submit_against_replay  # noqa: E402
from ops.bench.gpu.workload import Workload  # noqa: E402

from tensorq_engines.tensorrt import flavour  # noqa: E402
from tensorq_engines.tensorrt.cuda.device import Device  # noqa: E402
from tensorq_engines.tensorrt.cuda.status import runtime  # noqa: E402
from tensorq_engines.tensorrt.options import ArenaKind  # noqa: E402

NAMES = ("tiny", "mid", "resnet18", "det", "rec", "cls", "nude")
TIMED = ("tiny", "mid", "resnet18", "rec")


def environment() -> dict[str, Any]:
    device, found = Device.require(), flavour.find()
    return {
        "date": time.strftime("%Y-%m-%d"),
        "gpu": device.name,
        "compute_capability": device.compute_capability,
        "cuda_driver": runtime("cudaDriverGetVersion"),
        found.name: found.version_text,
        "cuda_python": _version("cuda-bindings"),
        "numpy": _version("numpy"),
        "python": platform.python_version(),
        "cpu_cores": len(os.sched_getaffinity(0)),
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "unknown"


def measure(folder: Path) -> dict[str, Any]:
    names = [name for name in NAMES if (folder / f"{name}.plan").exists()]
    found: dict[str, Any] = {"environment": environment(), "plans": names}
    kinds: tuple[ArenaKind, ...] = ("growing", "private")
    for arena in kinds:
        _try(found, f"resident_{arena}", partial(resident, names, folder, arena))
    for name in [name for name in TIMED if name in names]:
        work = Workload.load(name, folder)
        _try(found, f"{name}_graph_against_eager", partial(graph_against_eager, work, 4.0))
        _try(found, f"{name}_submit_against_replay", partial(submit_against_replay, work, 8, 2.0))
        _try(found, f"{name}_filling_and_running", partial(filling_and_running, work, 8, 2.0))
        _try(found, f"{name}_two_lanes", partial(two_lanes, work, 8, 3.0))
        work.engine.close()
    return found


def _try(found: dict[str, Any], name: str, measure: Callable[[], Any]) -> None:
    """One measurement that fails must not cost the others."""
    started = time.perf_counter()
    try:
        found[name] = measure()
    except Exception as exc:
        found[name] = {"error": f"{type(exc).__name__}: {exc}"}
    print(f"{name} ({time.perf_counter() - started:.1f} s): {json.dumps(found[name])}", file=sys.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plans", type=Path, required=True, help="folder of NAME.plan")
    parser.add_argument("--out", type=Path, help="file for the JSON; default is standard output")
    options = parser.parse_args()
    text = json.dumps(measure(options.plans), indent=1) + "\n"
    if options.out is None:
        sys.stdout.write(text)
    else:
        options.out.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
