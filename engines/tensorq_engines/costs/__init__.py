"""Costs: what a tile of each size takes on the engine, measured, refined while it runs, and kept."""

from tensorq_engines.costs.measure import measure_costs
from tensorq_engines.costs.store import CostStore
from tensorq_engines.costs.table import CostTable, RowShapes, assumed_costs

__all__ = ["CostStore", "CostTable", "RowShapes", "assumed_costs", "measure_costs"]
