"""How far `tensorq plan`'s estimates are off, over the plans whose sizes are known.

    python ops/bench/estimate.py [--rtx]

Known sizes are in ops/bench/results/*-plans-*.json: those of the H200 were taken down there, those of
TensorRT-RTX are made here by --rtx, which builds for no GPU. Writes results/estimate-errors-DATE.json, and
the copy that goes with the package, from which `tensorq plan` takes what it says of its estimates. Plans
that were looked at when the rules of fusion were chosen are marked "fitted": of others expect more error.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), *(str(ROOT / part) for part in ("tests", "producer", "engines"))]

import onnx  # noqa: E402
from ops.demo.repository import CLS, DET, FILES, REC, packaged  # noqa: E402

from models import networks  # type: ignore[import-not-found]  # noqa: E402
from tensorq_engines.onnx_model.header import read_header  # noqa: E402
from tensorq_engines.sizing import accuracy  # noqa: E402
from tensorq_engines.sizing.estimate import Build, estimate_tile, weights_bytes  # noqa: E402

RESULTS = Path(__file__).parent / "results"
PACKAGED = ROOT / "engines" / "tensorq_engines" / "sizing" / accuracy.FILE
MIB = 1 << 20

IMAGES = {"input": [32, 3, 224, 224]}
LARGEST: dict[str, dict[str, list[int]]] = {
    **dict.fromkeys(networks.ALL, IMAGES),
    "det": {"x": [4, 3, 960, 960]},
    "rec": {"x": [32, 3, 48, 960]},
    "cls": {"x": [32, 3, 48, 192]},
    "nudenet": {"images": [32, 3, 320, 320]},
}
"""Networks, and the largest tile that a plan is built for."""


def write_model(name: str, path: Path, side: int) -> None:
    """Puts the ONNX file of a network at ``path``, for images of ``side`` where that is free."""
    if name in networks.SIZED:
        onnx.save(networks.SIZED[name](side), str(path))
    elif name in networks.ALL:
        onnx.save(networks.ALL[name](), str(path))
    elif name == "nudenet":
        shutil.copyfile(packaged("nudenet", "320n.onnx"), path)
    else:
        file = FILES[{"det": DET, "rec": REC, "cls": CLS}[name]]
        shutil.copyfile(packaged("rapidocr_onnxruntime", f"models/{file}"), path)


def known() -> list[dict[str, Any]]:
    files = sorted(RESULTS.glob("*-plans-*.json"))
    return [plan for file in files for plan in json.loads(file.read_text(encoding="utf-8"))["plans"]]


def count_parameters(model: Any) -> int:
    return sum(math.prod(item.dims) for item in model.graph.initializer)


def compare(plan: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Adds what is estimated of a plan to what is known of it."""
    side = plan["max"].get("input", [networks.SIDE])[-1]
    path = folder / f"{plan['model']}-{side}.onnx"
    if not path.exists():
        write_model(plan["model"], path, side)
    model, signature = onnx.load(str(path)), read_header(path).signature
    parameters = count_parameters(model)
    if plan["parameters"] != parameters:
        raise SystemExit(
            f"{plan['model']} has {parameters} parameters, and its plan's had {plan['parameters']}: it is "
            f"another network now; take its record out of {RESULTS}, or measure its plan anew"
        )
    build = Build(plan["precision"], plan["optimization_level"])
    shapes = {name: tuple(lengths) for name, lengths in plan["max"].items()}
    tile = estimate_tile(model, signature, shapes, build)
    return {
        **plan,
        "estimated_activation_bytes": tile.arena_bytes,
        "estimated_io_bytes": tile.io_bytes,
        "estimated_weights_bytes": weights_bytes(model, build),
        "error": round(tile.arena_bytes / plan["activation_bytes"] - 1, 4),
    }


def build_rtx(folder: Path) -> list[dict[str, Any]]:
    """Builds every network with TensorRT-RTX, which says what activations a plan takes."""
    from tensorq_engines import Repository
    from tensorq_engines.tensorrt import flavour as flavours
    from tensorq_engines.tensorrt.builder import find_or_build

    flavour = flavours.find("tensorrt_rtx")
    plans = []
    for name, largest in LARGEST.items():
        for precision in ("fp16", "fp32"):
            home = folder / f"{name}-{precision}"
            home.mkdir()
            write_model(name, home / "model.onnx", networks.SIDE)
            ranges = [
                f"{key} = {{ min = {[1, *shape[1:]]}, opt = {shape}, max = {shape} }}"
                for key, shape in largest.items()
            ]
            text = "\n".join([f'precision = "{precision}"', "[[profile]]", *ranges, ""])
            (home / "model.toml").write_text(text, encoding="utf-8")
            sidecar = find_or_build(Repository(folder).get(home.name), flavour, None).sidecar
            if sidecar is None:
                raise SystemExit(f"{home}: the builder wrote no sidecar")
            plans.append(
                {
                    "model": name,
                    "precision": precision,
                    "parameters": count_parameters(onnx.load(str(home / "model.onnx"))),
                    "optimization_level": None,
                    "max": largest,
                    "activation_bytes": sidecar.activation_bytes[0],
                    "io_bytes": None,
                    "weights_bytes": sidecar.weights_bytes,
                    "context_bytes": 0,
                    "tensorrt": f"{flavour.name} {flavour.version_text}",
                    "where": "no GPU",
                    "source": "ops/bench/estimate.py --rtx",
                    "fitted": False,
                }
            )
            print(f"built {home.name}: {sidecar.activation_bytes[0] / MIB:.1f} MiB", flush=True)
    return plans


def show(plans: list[dict[str, Any]]) -> None:
    print(f"{'plan':<14}{'':26}{'known':>9}{'estimate':>10}{'off':>7}")
    for plan in plans:
        name = f"{plan['model']} {plan['precision']}"
        sizes = (plan["activation_bytes"] / MIB, plan["estimated_activation_bytes"] / MIB)
        print(f"{name:<14}{plan['tensorrt']:<26}{sizes[0]:>9.1f}{sizes[1]:>10.1f}{plan['error']:>+7.0%}")
    print("MiB of activations")
    for item in accuracy.summarize(plans):
        print(item)


def write(path: Path, plans: list[dict[str, Any]]) -> None:
    path.write_text(json.dumps({"plans": plans}, indent=1) + "\n", encoding="utf-8")
    print(f"figures in {path.relative_to(ROOT)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rtx", action="store_true", help="first build the plans of TensorRT-RTX anew")
    options = parser.parse_args()
    day = datetime.now(UTC).date()
    with tempfile.TemporaryDirectory(prefix="tensorq-estimate-") as scratch:
        if options.rtx:
            built = build_rtx(Path(scratch))
            for old in RESULTS.glob("rtx-plans-*.json"):
                old.unlink()
            write(RESULTS / f"rtx-plans-{day}.json", built)
        plans = [compare(plan, Path(scratch)) for plan in known()]
    show(plans)
    write(RESULTS / f"estimate-errors-{day}.json", plans)
    write(PACKAGED, plans)


if __name__ == "__main__":
    main()
