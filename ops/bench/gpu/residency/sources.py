"""Sources: how long it takes to find the plan of an ONNX file, which a load from one does each time."""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

from ops.bench.gpu.residency.engines import SIX, plan_path

from tensorq_engines import EngineError, Repository
from tensorq_engines.tensorrt import flavour
from tensorq_engines.tensorrt.builder import find
from tensorq_engines.tensorrt.cuda.device import Device

TESTS = Path(__file__).resolve().parents[4] / "tests"


def measure(models: Path, onnx: Path | None = None, times: int = 5) -> dict[str, Any]:
    """Returns the median ms to find each model's plan, and whether it was found.

    Args:
        models: the repository; its ``model.onnx`` files need not be there.
        onnx: folder of rec.onnx, det.onnx and cls.onnx; without it these are left out.
        times: how often each is looked for.
    """
    found: dict[str, Any] = {}
    if find_spec("onnx") is None:
        return {"find_ms": found, "error": "onnx is not installed"}
    with tempfile.TemporaryDirectory(prefix="tensorq-sources-") as scratch:
        for name in SIX:
            if plan_path(models, name) is None:
                continue
            folder = materialize(Path(scratch), models, name, onnx)
            if folder is None:
                continue
            try:
                found[name] = _find_ms(folder, times)
            except EngineError as exc:
                found[name] = {"ms": None, "found": False, "error": str(exc)}
    return {"find_ms": found}


def materialize(root: Path, models: Path, name: str, onnx: Path | None) -> Path | None:
    """Makes a model's folder whole under ``root``: ONNX file, settings and plans; None where it cannot be."""
    if str(TESTS) not in sys.path:
        sys.path.append(str(TESTS))
    build_models = import_module("gpu.build_models")
    ours = name in build_models.networks.ALL or name in build_models.networks.SIZED
    if not ours and (onnx is None or not (onnx / f"{name}.onnx").exists()):
        return None
    folder: Path = build_models.prepare(root, name, "fp16", "one", files=onnx)
    built = models / name / ".tensorq"
    if built.is_dir():
        shutil.copytree(built, folder / ".tensorq", dirs_exist_ok=True)
    return folder


def _find_ms(folder: Path, times: int) -> dict[str, Any]:
    entry, installed, device = Repository(folder.parent).get(folder.name), flavour.find(), Device.require()
    samples, plan = [], None
    for _ in range(times):
        started = time.perf_counter()
        plan = find(entry, installed, device)
        samples.append(1000 * (time.perf_counter() - started))
    return {"ms": round(median(samples), 2), "found": plan is not None}
