"""Activation memory against the largest batch and against the resolution: as described, and as measured."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ops.bench.gpu.residency import article
from ops.bench.gpu.residency.engines import TimedEngine, make_tile, open_engine

from tensorq_engines import create_gauge
from tensorq_engines.tensorrt.lane import TensorRtLane
from tensorq_engines.tensorrt.options import LaneOptions

BY_ROWS = {4: "tiny_cnn-b4", 8: "tiny_cnn-b8", 16: "tiny_cnn-b16", 32: "tiny_cnn"}
BY_SIDE = {64: "tiny_cnn-s64", 112: "tiny_cnn-s112", 224: "tiny_cnn"}


def measure(models: Path) -> dict[str, Any]:
    """Returns sizes in bytes, by the largest batch and by the side of an image."""
    found: dict[str, dict[str, Any]] = {}
    faults = []
    for name in dict.fromkeys([*BY_ROWS.values(), *BY_SIDE.values()]):
        try:
            found[name] = _sizes(open_engine(models, name))
        except Exception as exc:
            faults.append(f"activation, {name}: {type(exc).__name__}: {exc}")
    return {
        "by_rows": {str(rows): found[name] for rows, name in BY_ROWS.items() if name in found},
        "by_side": {str(side): found[name] for side, name in BY_SIDE.items() if name in found},
        "article_mib": {"by_rows": article.CONTEXT_MIB_BY_ROWS, "by_side": article.CONTEXT_MIB_BY_SIDE},
        "faults": faults,
    }


def _sizes(engine: TimedEngine) -> dict[str, int]:
    described = engine.footprint.arena_bytes
    # The first pass also loads kernels, which the driver keeps.
    _grow(engine, private=True)
    with engine:
        native = engine.model.native.activation_bytes(0)
    return {
        "described_bytes": described,
        "device_memory_size_bytes": native,
        "private_growth_bytes": _grow(engine, private=True),
        "shared_growth_bytes": _grow(engine, private=False),
    }


def _grow(engine: TimedEngine, *, private: bool) -> int:
    """Returns the driver's growth with the first, largest tile, less the device's inputs and outputs."""
    gauge = create_gauge("tensorrt")
    options = LaneOptions(arena="private" if private else "auto")
    with engine, TensorRtLane(options=options) as lane:
        tile = make_tile(engine, engine.ladder[-1])
        before = gauge.used_bytes() or 0
        lane.run(engine, tile)
        return (gauge.used_bytes() or 0) - before - lane.memory.io_bytes
