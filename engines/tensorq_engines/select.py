"""Select: which engine runs a model. The only place that knows all kinds."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

from tensorq_engines.base.engine import Engine
from tensorq_engines.base.errors import ModelLoadFailed
from tensorq_engines.base.lane import MIN_SLOTS, Lane
from tensorq_engines.base.options import EngineOptions
from tensorq_engines.residency.gauge import Gauge

if TYPE_CHECKING:
    from tensorq_engines.repository.entry import ModelEntry


@dataclass(frozen=True, slots=True)
class Kind:
    """Where the classes of one kind of engine are, as ``module:class``; imported when first used.

    Attributes:
        engine: a class with ``from_entry(entry, options)``.
        lane: a class whose constructor takes ``slot_count``.
        gauge: a class without arguments that tells how much of the kind's memory is in use.
    """

    engine: str
    lane: str
    gauge: str = "tensorq_engines.residency.gauge:NullGauge"


KINDS = {
    "onnxruntime": Kind(
        "tensorq_engines.onnxruntime.engine:OnnxRuntimeEngine",
        "tensorq_engines.onnxruntime.lane:OnnxRuntimeLane",
    ),
    "tensorrt": Kind(
        "tensorq_engines.tensorrt.engine:TensorRtEngine",
        "tensorq_engines.tensorrt.lane:TensorRtLane",
        "tensorq_engines.tensorrt.gauge:DeviceGauge",
    ),
    "reference": Kind(
        "tensorq_engines.reference.engine:ReferenceEngine", "tensorq_engines.reference.lane:ReferenceLane"
    ),
}


PLAN_SUFFIXES = (".plan", ".engine")


def create_engine(entry: ModelEntry, options: EngineOptions | None = None) -> Engine:
    """Builds the engine that runs a model; neither the model nor its runtime is loaded.

    Args:
        entry: the model.
        options: the worker's settings; None for defaults.

    Raises:
        ModelLoadFailed: this build has no engine for the model.
    """
    plan = entry.source.suffix in PLAN_SUFFIXES
    kind = entry.settings.engine
    if kind == "auto":
        kind = "tensorrt" if plan or tensorrt_is_usable() else "onnxruntime"
    if kind not in KINDS:
        raise ModelLoadFailed(
            f"model {entry.name!r}: model.toml asks for engine {kind!r}, and this build has only "
            f"{', '.join(KINDS)}; choose one of them, or 'auto'"
        )
    if entry.source.suffix != ".onnx" and not (plan and kind == "tensorrt"):
        raise ModelLoadFailed(
            f"model {entry.name!r}: {kind} runs .onnx files, got {entry.source}; "
            "name one as source in model.toml"
        )
    engine = _find(KINDS[kind].engine).from_entry(entry, EngineOptions() if options is None else options)
    return cast(Engine, engine)


def create_lane(kind: str, slot_count: int = MIN_SLOTS) -> Lane:
    """Builds a lane for engines of ``kind``, which is `Engine.kind`; threads start with the first tile.

    Raises:
        ValueError: there is no such kind, or a lane needs more slots.
    """
    return cast(Lane, _find(_kind(kind).lane)(slot_count))


def create_gauge(kind: str) -> Gauge:
    """Builds the gauge of the memory where engines of ``kind`` compute; it touches no device until read.

    Raises:
        ValueError: there is no such kind.
    """
    return cast(Gauge, _find(_kind(kind).gauge)())


def tensorrt_is_usable() -> bool:
    """Tells whether there are a GPU and a TensorRT module; imports no TensorRT, and asks CUDA only once."""
    from tensorq_engines.tensorrt.cuda.device import Device
    from tensorq_engines.tensorrt.flavour import installed

    return bool(installed()) and Device.probe() is not None


def _kind(kind: str) -> Kind:
    if kind not in KINDS:
        raise ValueError(f"got kind {kind!r}, expected one of {', '.join(KINDS)}")
    return KINDS[kind]


def _find(path: str) -> Any:
    module, _, name = path.partition(":")
    return getattr(import_module(module), name)
