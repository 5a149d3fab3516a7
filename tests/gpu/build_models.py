"""Builds plans with tensorq's own builder, on the machine at hand, and prints what came of it as JSON.

    python tests/gpu/build_models.py DIR [NAME ...] [--precision fp16] [--profiles one] [--limit-s 500]
                                     [--uint8] [--rows 32] [--side 224] [--onnx DIR] [--plans DIR]

DIR is a model repository. A NAME of models/networks.py is written there first, and so are rec, det, cls and
nude from --onnx's NAME.onnx; another must be there.
Plans, sidecars and the timing cache lie in DIR/NAME/.tensorq; --plans has NAME.plan and its sidecar put into
another folder besides. Exits 1 where a model failed or time ran out.
"""

from __future__ import annotations

import argparse
import json
import logging
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / part) for part in ("tests", "producer", "engines")]

from models import catalogue, networks  # noqa: E402

WIRE = 'inputs.input = { wire = "uint8", scale = 0.0078125, mean = 128 }\n'
ROWS = 32
FAST = "tensorrt.optimization_level = 0\n"
FILES = {
    "rec": FAST + "[[profile]]\nx = { min = [1,3,48,64], opt = [8,3,48,320], max = [32,3,48,960] }\n",
    "det": FAST + "[[profile]]\nx = { min = [1,3,320,320], opt = [2,3,736,736], max = [4,3,960,960] }\n",
    "cls": FAST + "[[profile]]\nx = { min = [1,3,48,192], opt = [8,3,48,192], max = [32,3,48,192] }\n",
    "nude": FAST
    + "[[profile]]\nimages = { min = [1,3,320,320], opt = [8,3,320,320], max = [32,3,320,320] }\n",
}
"""Settings of models that come as files."""


def main() -> int:
    arguments = _parse()
    if arguments.one:
        print(json.dumps(build(arguments.folder, arguments.flavour)))
        return 0
    deadline = time.monotonic() + arguments.limit_s
    failed = False
    for name in arguments.names or list(networks.ALL):
        folder = prepare(
            arguments.folder,
            name,
            arguments.precision,
            arguments.profiles,
            wire=arguments.uint8,
            rows=arguments.rows,
            side=arguments.side,
            files=arguments.onnx,
        )
        command = [sys.executable, __file__, str(folder), "--one"]
        command += ["--flavour", arguments.flavour] if arguments.flavour else []
        result = run(command, deadline - time.monotonic())
        failed |= "error" in result
        if arguments.plans is not None and "plan" in result:
            publish(Path(result["plan"]), arguments.plans, folder.name)
        print(json.dumps({"model": folder.name, **result}), flush=True)
    return int(failed)


def prepare(
    root: Path,
    name: str,
    precision: str,
    profiles: str,
    *,
    wire: bool = False,
    rows: int = ROWS,
    side: int = networks.SIDE,
    files: Path | None = None,
) -> Path:
    """Writes a model's folder, unless it is there; its name tells what is not the default."""
    from_file = files is not None and name in FILES
    if name not in networks.ALL and name not in networks.SIZED and not from_file:
        return root / name
    parts = [name, precision if precision != "fp16" else "", profiles if profiles != "one" else ""]
    parts += ["uint8" if wire else "", f"b{rows}" if rows != ROWS else ""]
    parts += [f"s{side}" if side != networks.SIDE else ""]
    folder = root / "-".join(filter(None, parts))
    if folder.exists():
        return folder
    head = f'precision = "{precision}"\ntensorrt.profiles = "{profiles}"\n'
    if files is not None and from_file:
        head += "tensorrt.tf32 = false\n" if precision == "fp32" else ""
        folder.mkdir(parents=True)
        shutil.copyfile(files / f"{name}.onnx", folder / "model.onnx")
        (folder / "model.toml").write_text(head + FILES[name])
    else:
        model = networks.SIZED[name](side) if name in networks.SIZED else networks.ALL[name]()
        lengths = {"min": 1, "opt": min(8, rows), "max": rows}
        shapes = ", ".join(f"{word} = [{size}, 3, {side}, {side}]" for word, size in lengths.items())
        settings = f"{head}{WIRE if wire else ''}[[profile]]\ninput = {{ {shapes} }}\n"
        catalogue.write_repository(root, {folder.name: (model, settings)})
    return folder


def publish(plan: Path, folder: Path, name: str) -> None:
    """Copies a plan and its sidecar to where they are found by the model's name."""
    folder.mkdir(parents=True, exist_ok=True)
    for ending in ("", ".json"):
        shutil.copyfile(f"{plan}{ending}", folder / f"{name}.plan{ending}")


def run(command: list[str], limit_s: float) -> dict[str, Any]:
    """Runs one build in a process of its own, which can be ended."""
    try:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, timeout=max(limit_s, 0.1), text=True, check=False
        )
    except subprocess.TimeoutExpired:
        return {"error": "the time limit came first"}
    if done.returncode:
        return {"error": f"exit status {done.returncode}"}
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def build(folder: Path, name: str | None) -> dict[str, Any]:
    """Finds or builds the plan of one model."""
    from tensorq_engines import EngineError, Repository
    from tensorq_engines.tensorrt import flavour as flavours
    from tensorq_engines.tensorrt.builder import find_or_build
    from tensorq_engines.tensorrt.cuda.device import Device

    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stderr)
    began = time.perf_counter()
    try:
        flavour, device = flavours.find(name), Device.probe()
        plan = find_or_build(Repository(folder.parent).get(folder.name), flavour, device)
    except EngineError as exc:
        return {"error": str(exc)}
    sidecar = plan.sidecar
    if sidecar is None:
        return {"error": "no sidecar"}
    return {
        "seconds": round(time.perf_counter() - began, 1),
        "plan": str(plan.path),
        "plan_bytes": plan.path.stat().st_size,
        "weights_bytes": sidecar.weights_bytes,
        "activation_bytes": sidecar.activation_bytes,
        "io_bytes": sidecar.io_bytes,
        "profiles": [str(profile) for profile in sidecar.profiles],
        "precision": sidecar.precision,
        "tensorrt": f"{sidecar.flavour} {sidecar.version_text}",
        "device": sidecar.device_name,
    }


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*", help=f"default: {', '.join(networks.ALL)}")
    parser.add_argument("--precision", default="fp16", choices=["fp32", "fp16", "bf16"])
    parser.add_argument("--profiles", default="one", choices=["one", "ladder"])
    parser.add_argument("--uint8", action="store_true", help="rows travel as uint8")
    parser.add_argument("--onnx", type=Path, help="folder of rec.onnx, det.onnx, cls.onnx, nude.onnx")
    parser.add_argument("--rows", type=int, default=ROWS, help="the profile's largest batch")
    parser.add_argument("--side", type=int, default=networks.SIDE, help="of tiny_cnn's and mid_cnn's images")
    parser.add_argument("--limit-s", type=float, default=500.0)
    parser.add_argument("--flavour", choices=["tensorrt", "tensorrt_rtx"])
    parser.add_argument("--plans", type=Path, help="folder that gets NAME.plan and NAME.plan.json")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_intermixed_args()


if __name__ == "__main__":
    sys.exit(main())
