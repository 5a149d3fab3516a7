"""Tiles: the planner's choice of a size, on a model's own costs."""

from __future__ import annotations

from ops.bench.residency.inputs import Model

from tensorq_worker.planner import Tiling, wait_ms


class Tiles:
    """What the planner says of one model."""

    def __init__(self, model: Model, max_delay_ms: float) -> None:
        self._tiling = Tiling(model.ladder, model.tile_ms)
        self._max_delay_ms = max_delay_ms

    def next_size(self, rows: int) -> int:
        """The size to run first for ``rows`` waiting rows."""
        return self._tiling.next_size(rows)

    def wait_ms(self, rows: int, age_ms: float) -> float:
        """How long to wait for more rows, at a rate that is not known."""
        return wait_ms(rows, self._tiling, age_ms, self._max_delay_ms, None)
