"""Planner: which tile sizes serve the waiting rows, and whether to wait for more. Pure."""

from tensorq_worker.planner.rate import ArrivalRate
from tensorq_worker.planner.tiling import Tiling
from tensorq_worker.planner.wait import wait_ms

__all__ = ["ArrivalRate", "Tiling", "wait_ms"]
