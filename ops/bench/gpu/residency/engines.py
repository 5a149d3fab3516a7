"""Engines of the plans in a model repository, which note how long loads and closes take."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from tensorq_engines.base.admission import Shapes, tile_shapes
from tensorq_engines.base.engine import Engine
from tensorq_engines.tensorrt.engine import TensorRtEngine

MIB = 2**20
SIX = ("tiny_cnn", "mid_cnn", "resnet18", "rec", "det", "cls")


class TimedEngine(TensorRtEngine):
    """Takes a plan as it is, so that a load is what the article's is: read, check, deserialize.

    Attributes:
        load_ms: of each load.
        close_ms: of each close.
    """

    def __init__(self, name: str, source: Path) -> None:
        super().__init__(name, source)
        self.load_ms: list[float] = []
        self.close_ms: list[float] = []

    def load(self) -> None:
        """See `Engine.load`."""
        if self.loaded:
            return
        started = time.perf_counter()
        super().load()
        self.load_ms.append(1000 * (time.perf_counter() - started))

    def close(self) -> None:
        """See `Engine.close`."""
        if not self.loaded:
            return
        started = time.perf_counter()
        super().close()
        self.close_ms.append(1000 * (time.perf_counter() - started))


def plan_path(models: Path, name: str) -> Path | None:
    """Returns a model's newest plan in DIR/NAME/.tensorq, or else DIR/NAME.plan; None: there is none."""
    built = sorted((models / name / ".tensorq").glob("*.plan"), key=lambda path: path.stat().st_mtime)
    beside = models / f"{name}.plan"
    return built[-1] if built else beside if beside.exists() else None


def open_engine(models: Path, name: str) -> TimedEngine:
    """Returns the engine of a model's plan, not loaded.

    Raises:
        FileNotFoundError: there is no plan.
    """
    path = plan_path(models, name)
    if path is None:
        raise FileNotFoundError(f"{models} has no plan of {name}: build it with tests/gpu/build_models.py")
    return TimedEngine(name, path)


def row_shapes(engine: Engine) -> Shapes:
    """Returns the shape of one row of each input, as the first profile is tuned for (rec: W = 320)."""
    return {item.name: item.opt[1:] for item in engine.profiles[0]}


def make_tile(engine: Engine, rows: int) -> dict[str, np.ndarray]:
    """Returns random inputs of ``rows`` rows; the same for the same model and rows."""
    rng = np.random.default_rng(rows)
    dtypes = {spec.name: np.dtype(spec.dtype) for spec in engine.signature.inputs}
    return {
        name: rng.uniform(-1, 1, shape).astype(dtypes[name])
        if dtypes[name].kind == "f"
        else rng.integers(0, 100, shape).astype(dtypes[name])
        for name, shape in tile_shapes(engine.signature, row_shapes(engine), rows).items()
    }


def mib(size: int) -> float:
    """Returns bytes in MiB, as people read them."""
    return round(size / MIB, 1)
