"""Churn: cycles on one lane and on two, and what they tell of loads, evictions and tiles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ops.bench.gpu.residency.cycles import FLAT_BYTES, MIB, Cycles, describe, tight_budget
from ops.bench.gpu.residency.engines import SIX, TimedEngine, open_engine, plan_path
from ops.bench.gpu.residency.inputs import Measured, tile_costs
from ops.bench.gpu.residency.inputs import describe as describe_inputs
from ops.bench.gpu.residency.pool import Pool
from ops.bench.gpu.residency.reference import Reference, references

from tensorq_engines import create_gauge


@dataclass(frozen=True, slots=True)
class Counts:
    """How much is run.

    Attributes:
        one_lane: cycles on one lane.
        two_lanes: cycles on two lanes, each of two tiles at once.
        limit_s: the most for all of them.
    """

    one_lane: int = 500
    two_lanes: int = 100
    limit_s: float = 140.0


def measure(models: Path, environment: Mapping[str, Any], counts: Counts) -> dict[str, Any]:
    """Runs the cycles; what they found beside is under ``residency_inputs``."""
    names = [name for name in SIX if plan_path(models, name) is not None]
    missing = [f"cycles: there is no plan of {name}" for name in SIX if name not in names]
    expected = references(open_engine(models, name) for name in names)
    costs_ms = tile_costs([open_engine(models, name) for name in names])
    gauge = create_gauge("tensorrt")
    engines = [open_engine(models, name) for name in names]
    one, inputs = _run(engines, expected, 1, counts.one_lane, 0.7 * counts.limit_s)
    after_one = gauge.used_bytes() or 0
    again = [open_engine(models, name) for name in names]
    two, _ = _run(again, expected, 2, counts.two_lanes, 0.3 * counts.limit_s)
    left = (gauge.used_bytes() or 0) - after_one
    flat = [] if left <= FLAT_BYTES else [f"cycles: {left / MIB:.1f} MiB more are in use after closing all"]
    return {
        "one_lane": one,
        "two_lanes": two,
        "left_after_closing_all_bytes": left,
        "outputs": {
            name: {"bit_equal": reference.bit_equal, "close": reference.close}
            for name, reference in expected.items()
        },
        "residency_inputs": describe_inputs(environment, engines, costs_ms, inputs),
        "faults": [*missing, *one["faults"], *two["faults"], *flat],
    }


def _run(
    engines: list[TimedEngine], expected: Mapping[str, Reference], lanes: int, count: int, limit_s: float
) -> tuple[dict[str, Any], dict[str, Measured]]:
    try:
        with Pool(engines, budget_bytes=tight_budget(engines, lanes), lanes=lanes) as pool:
            cycles = Cycles(pool, expected, seed=lanes, limit_s=limit_s)
            cycles.warm()
            cycles.run(count)
            measured = {
                model.name: Measured(model.footprint, cycles.log.first_run_ms.get(model.name, []))
                for model in pool.residents
            }
            return describe(cycles, pool, count), measured
    except Exception as exc:  # what the other run found is worth keeping
        fault = f"cycles, lanes: {lanes}: {type(exc).__name__}: {exc}"
        return {"error": fault, "faults": [fault]}, {}
