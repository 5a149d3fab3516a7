"""Warm-up: running the ladder once before jobs come."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from tensorq_engines.base.admission import Shapes, tile_shapes
from tensorq_engines.base.engine import Engine
from tensorq_engines.base.errors import ShapeRefused
from tensorq_engines.base.lane import Lane


@dataclass(frozen=True, slots=True)
class WarmTile:
    """One tile that was run to warm up.

    Attributes:
        rows: its rows, a size of the ladder; 1 for a model without a batch axis.
        shapes: its input shapes.
        seconds: how long it took, staging included; a first run is slower than those that follow.
    """

    rows: int
    shapes: dict[str, tuple[int, ...]]
    seconds: float


def warm(lane: Lane, engine: Engine) -> tuple[WarmTile, ...]:
    """Runs a tile of zeros for every size of the ladder, at the shapes that are known beforehand.

    These are each profile's opt shapes, or the signature's where only the batch axis is free. For other
    models nothing is known and nothing runs.

    Args:
        lane: a lane of the engine's kind with a free slot.
        engine: a loaded engine.

    Returns:
        The tiles that ran, smallest first for each profile.

    Raises:
        TileFailed: a tile of zeros fails in this model.
        SlotMisuse: the lane has no free slot.
    """
    warmed = []
    for row_shapes in known_row_shapes(engine):
        try:
            sizes = engine.ladder_for(row_shapes)
        except ShapeRefused:
            continue
        for rows in sizes:
            shapes = tile_shapes(engine.signature, row_shapes, rows)
            tile = {spec.name: np.zeros(shapes[spec.name], spec.dtype) for spec in engine.signature.inputs}
            started = time.perf_counter()
            lane.run(engine, tile)
            warmed.append(WarmTile(rows, shapes, time.perf_counter() - started))
    return tuple(warmed)


def known_row_shapes(engine: Engine) -> Iterator[Shapes]:
    """Yields the shapes of rows that are known before any job: see `warm`."""
    skip = 1 if engine.signature.batch_axis == 0 else 0
    fixed = {spec.name: spec.shape[skip:] for spec in engine.signature.inputs}
    seen = []
    for opts in [{item.name: item.opt[skip:] for item in profile} for profile in engine.profiles] or [{}]:
        row_shapes: dict[str, tuple[int, ...]] = {}
        for name, shape in fixed.items():
            lengths = opts.get(name, shape)
            row_shapes[name] = tuple(length for length in lengths if isinstance(length, int))
        if (
            all(len(row_shapes[name]) == len(shape) for name, shape in fixed.items())
            and row_shapes not in seen
        ):
            seen.append(row_shapes)
            yield row_shapes
