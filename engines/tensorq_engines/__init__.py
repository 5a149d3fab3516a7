"""Models as objects that run tiles.

`Repository` finds models in a folder, `create_engine` makes a model's `Engine`, and a `Lane` runs its
tiles in `Slot`s. Names are imported when first used: importing this package loads no runtime.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tensorq_engines.base.buckets import Buckets, Crop
    from tensorq_engines.base.buckets_check import check_buckets
    from tensorq_engines.base.engine import Engine, HostEngine
    from tensorq_engines.base.errors import (
        BuildFailed,
        EngineError,
        EngineFatal,
        LaneClosed,
        ModelDoesNotFit,
        ModelLoadFailed,
        RepositoryError,
        ResidencyClosed,
        ShapeRefused,
        SlotMisuse,
        SlotTimeout,
        TileFailed,
    )
    from tensorq_engines.base.footprint import Footprint
    from tensorq_engines.base.ladder import derive_ladder
    from tensorq_engines.base.lane import Lane
    from tensorq_engines.base.memory import EngineMemory, LaneMemory
    from tensorq_engines.base.options import EngineOptions
    from tensorq_engines.base.problem import Problem
    from tensorq_engines.base.profile import InputRange, Profile
    from tensorq_engines.base.slot import Slot, SlotState
    from tensorq_engines.base.threaded_lane import ThreadedLane
    from tensorq_engines.costs.measure import measure_costs
    from tensorq_engines.costs.store import CostStore
    from tensorq_engines.costs.table import CostTable
    from tensorq_engines.repository.entry import ModelEntry
    from tensorq_engines.repository.repository import Repository
    from tensorq_engines.repository.settings import ModelSettings
    from tensorq_engines.residency.account import Account
    from tensorq_engines.residency.decision import Evict, Fits, Later, Never
    from tensorq_engines.residency.gauge import Gauge, NullGauge
    from tensorq_engines.residency.ledger import Integrity
    from tensorq_engines.residency.policy import LoadPolicy, ResidentState
    from tensorq_engines.residency.residency import Residency
    from tensorq_engines.residency.resident import Resident
    from tensorq_engines.residency.residents import Residents
    from tensorq_engines.residency.snapshot import Snapshot
    from tensorq_engines.select import create_engine, create_gauge, create_lane
    from tensorq_engines.warmup import WarmTile, known_row_shapes, warm

__all__ = [
    # models and their files
    "Buckets",
    "Crop",
    "ModelEntry",
    "ModelSettings",
    "Problem",
    "Repository",
    "check_buckets",
    # running tiles
    "Engine",
    "EngineMemory",
    "EngineOptions",
    "Footprint",
    "InputRange",
    "Lane",
    "LaneMemory",
    "Profile",
    "Slot",
    "SlotState",
    "WarmTile",
    "create_engine",
    "create_gauge",
    "create_lane",
    "derive_ladder",
    "known_row_shapes",
    "warm",
    # which models are loaded, under a budget
    "Account",
    "Evict",
    "Fits",
    "Gauge",
    "Integrity",
    "Later",
    "LoadPolicy",
    "Never",
    "NullGauge",
    "Residency",
    "Resident",
    "ResidentState",
    "Residents",
    "Snapshot",
    # what tiles cost
    "CostStore",
    "CostTable",
    "measure_costs",
    # writing an engine that computes inside a call
    "HostEngine",
    "ThreadedLane",
    # errors
    "BuildFailed",
    "EngineError",
    "EngineFatal",
    "LaneClosed",
    "ModelDoesNotFit",
    "ModelLoadFailed",
    "RepositoryError",
    "ResidencyClosed",
    "ShapeRefused",
    "SlotMisuse",
    "SlotTimeout",
    "TileFailed",
]

_ERRORS = "base.errors"
_HOMES = {
    "Buckets": "base.buckets",
    "Crop": "base.buckets",
    "check_buckets": "base.buckets_check",
    "ModelEntry": "repository.entry",
    "ModelSettings": "repository.settings",
    "Problem": "base.problem",
    "Repository": "repository.repository",
    "Engine": "base.engine",
    "EngineMemory": "base.memory",
    "EngineOptions": "base.options",
    "Footprint": "base.footprint",
    "InputRange": "base.profile",
    "Lane": "base.lane",
    "LaneMemory": "base.memory",
    "Profile": "base.profile",
    "Slot": "base.slot",
    "SlotState": "base.slot",
    "WarmTile": "warmup",
    "create_engine": "select",
    "create_gauge": "select",
    "create_lane": "select",
    "derive_ladder": "base.ladder",
    "known_row_shapes": "warmup",
    "warm": "warmup",
    "Account": "residency.account",
    "Evict": "residency.decision",
    "Fits": "residency.decision",
    "Gauge": "residency.gauge",
    "Integrity": "residency.ledger",
    "Later": "residency.decision",
    "LoadPolicy": "residency.policy",
    "Never": "residency.decision",
    "NullGauge": "residency.gauge",
    "Residency": "residency.residency",
    "Resident": "residency.resident",
    "ResidentState": "residency.policy",
    "Residents": "residency.residents",
    "Snapshot": "residency.snapshot",
    "CostStore": "costs.store",
    "CostTable": "costs.table",
    "measure_costs": "costs.measure",
    "HostEngine": "base.engine",
    "ThreadedLane": "base.threaded_lane",
    "BuildFailed": _ERRORS,
    "EngineError": _ERRORS,
    "EngineFatal": _ERRORS,
    "LaneClosed": _ERRORS,
    "ModelDoesNotFit": _ERRORS,
    "ModelLoadFailed": _ERRORS,
    "RepositoryError": _ERRORS,
    "ResidencyClosed": _ERRORS,
    "ShapeRefused": _ERRORS,
    "SlotMisuse": _ERRORS,
    "SlotTimeout": _ERRORS,
    "TileFailed": _ERRORS,
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
