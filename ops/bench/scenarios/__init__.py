"""The ways of running one model on jobs from Redis that the bench compares."""

from ops.bench.scenarios.base import Scenario, Tiles
from ops.bench.scenarios.pipelined import Pipelined
from ops.bench.scenarios.stock_rq import StockRq
from ops.bench.scenarios.tensorq_tiles import TensorqTiles

__all__ = ["Pipelined", "Scenario", "StockRq", "TensorqTiles", "Tiles"]
