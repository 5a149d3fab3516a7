"""Reference: what tiles must give, from a lane without graphs and without shared memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
from ops.bench.gpu.residency.engines import TimedEngine, make_tile

from tensorq_engines.tensorrt.lane import TensorRtLane
from tensorq_engines.tensorrt.options import LaneOptions

TOLERANCE = 1e-2
"""Of the largest value of an output; FP16 keeps three digits."""

Tile = Mapping[str, np.ndarray]


@dataclass
class Reference:
    """Tiles of one model and what they give.

    Attributes:
        tiles: inputs by rows.
        outputs: by rows.
        bit_equal: how many were compared and were the same to the bit.
        close: how many were not, and near enough.
    """

    tiles: dict[int, Tile]
    outputs: dict[int, Tile]
    bit_equal: int = field(default=0)
    close: int = field(default=0)

    def check(self, rows: int, outputs: Tile) -> str:
        """Counts outputs of the tile of ``rows`` rows; returns what is wrong with them, or nothing."""
        close = False
        for name, expected in self.outputs[rows].items():
            got = outputs[name]
            if np.array_equal(got, expected):
                continue
            worst = float(np.max(np.abs(got.astype(np.float64) - expected)))
            if not worst <= TOLERANCE * max(float(np.max(np.abs(expected))), 1e-6):
                return f"output {name!r} of {rows} rows is off by up to {worst:.3g}"
            close = True
        self.close += close
        self.bit_equal += not close
        return ""


def references(engines: Iterable[TimedEngine]) -> dict[str, Reference]:
    """Runs every ladder size of each model; engines are closed again."""
    found = {}
    for engine in engines:
        with engine, TensorRtLane(options=LaneOptions(arena="private", graphs=False)) as lane:
            tiles = {rows: make_tile(engine, rows) for rows in engine.ladder}
            found[engine.name] = Reference(
                dict(tiles), {rows: lane.run(engine, tile) for rows, tile in tiles.items()}
            )
    return found
