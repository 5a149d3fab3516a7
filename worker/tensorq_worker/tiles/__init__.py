"""Tiles: jobs in, staged by shape, cut into batches, and their results put together again."""

from tensorq_worker.tiles.fit import Fit
from tensorq_worker.tiles.run import Run
from tensorq_worker.tiles.stage import Part, Stage
from tensorq_worker.tiles.tile import Tile

__all__ = ["Fit", "Part", "Run", "Stage", "Tile"]
