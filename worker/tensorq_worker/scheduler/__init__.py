"""Scheduler: which tile runs next, over all models and lanes, and which model is loaded meanwhile. Pure."""

from __future__ import annotations

from tensorq_worker.scheduler.bound import ModelTimes, bound_ms, patience_ms
from tensorq_worker.scheduler.candidate import Candidate
from tensorq_worker.scheduler.choose import Choice, choose
from tensorq_worker.scheduler.turns import Turns

__all__ = [
    "Candidate",
    "Choice",
    "ModelTimes",
    "Turns",
    "bound_ms",
    "choose",
    "patience_ms",
]
