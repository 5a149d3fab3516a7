"""Inputs of the residency simulation: what models take and what they cost, in the form that it reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from ops.bench.gpu.residency.engines import TimedEngine, row_shapes

from tensorq_engines import Footprint, measure_costs
from tensorq_engines.tensorrt.lane import TensorRtLane

ABOUT = (
    "Inputs of the residency simulation, measured by ops/bench/gpu/residency. tile_ms: median Slot.busy_s by "
    "rows, one lane. footprint: weights as the driver showed them, the rest by the plan's sidecar. "
    "load_ms: median of reading, checking and deserializing the plan (engine_load_ms), and of what the "
    "first tile after it takes more than the same tile again, with context and graph (first_tile_ms); not in "
    "it is finding the plan of an ONNX file (see sources). evict_ms: median of a close."
)


@dataclass(frozen=True, slots=True)
class Measured:
    """What loads of a model showed.

    Attributes:
        footprint: with the weights that the driver showed.
        first_ms: what first tiles after loads took more than the same again.
    """

    footprint: Footprint
    first_ms: Sequence[float]


def tile_costs(engines: Sequence[TimedEngine]) -> dict[str, dict[str, float]]:
    """Returns the ms of a tile by rows, by model; engines are closed again."""
    found = {}
    for engine in engines:
        with engine, TensorRtLane() as lane:
            costs_ms = measure_costs(lane, engine, row_shapes(engine))
        found[engine.name] = {str(rows): round(cost, 4) for rows, cost in costs_ms.items()}
    return found


def describe(
    environment: Mapping[str, Any],
    engines: Sequence[TimedEngine],
    costs_ms: Mapping[str, Mapping[str, float]],
    measured: Mapping[str, Measured],
) -> dict[str, Any]:
    """Returns what ops/bench/residency reads, of the models that were loaded and evicted at least once.

    Args:
        environment: of the run.
        engines: which have counted their loads and closes.
        costs_ms: see `tile_costs`.
        measured: by model.
    """
    models = {}
    for engine in engines:
        name = engine.name
        if name not in measured or not engine.load_ms or not engine.close_ms or not measured[name].first_ms:
            continue
        load_ms, first_ms = median(engine.load_ms), median(measured[name].first_ms)
        models[name] = {
            "footprint": asdict(measured[name].footprint),
            "load_ms": round(load_ms + first_ms, 2),
            "tile_ms": dict(costs_ms.get(name, {})),
            "engine_load_ms": round(load_ms, 2),
            "first_tile_ms": round(first_ms, 2),
            "evict_ms": round(median(engine.close_ms), 2),
            "loads": len(engine.load_ms),
        }
    return {
        "about": ABOUT,
        "gpu": environment.get("gpu"),
        "tensorrt": environment.get("tensorrt"),
        "date": environment.get("date"),
        "models": models,
    }
