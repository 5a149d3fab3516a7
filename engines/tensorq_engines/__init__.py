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
        ModelLoadFailed,
        RepositoryError,
        ShapeRefused,
        SlotMisuse,
        SlotTimeout,
        TileFailed,
    )
    from tensorq_engines.base.footprint import Footprint
    from tensorq_engines.base.ladder import derive_ladder
    from tensorq_engines.base.lane import Lane
    from tensorq_engines.base.options import EngineOptions
    from tensorq_engines.base.problem import Problem
    from tensorq_engines.base.profile import InputRange, Profile
    from tensorq_engines.base.slot import Slot, SlotState
    from tensorq_engines.base.threaded_lane import ThreadedLane
    from tensorq_engines.repository.entry import ModelEntry
    from tensorq_engines.repository.repository import Repository
    from tensorq_engines.repository.settings import ModelSettings
    from tensorq_engines.select import create_engine, create_lane
    from tensorq_engines.warmup import WarmTile, warm

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
    "EngineOptions",
    "Footprint",
    "InputRange",
    "Lane",
    "Profile",
    "Slot",
    "SlotState",
    "WarmTile",
    "create_engine",
    "create_lane",
    "derive_ladder",
    "warm",
    # writing an engine that computes inside a call
    "HostEngine",
    "ThreadedLane",
    # errors
    "BuildFailed",
    "EngineError",
    "EngineFatal",
    "LaneClosed",
    "ModelLoadFailed",
    "RepositoryError",
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
    "EngineOptions": "base.options",
    "Footprint": "base.footprint",
    "InputRange": "base.profile",
    "Lane": "base.lane",
    "Profile": "base.profile",
    "Slot": "base.slot",
    "SlotState": "base.slot",
    "WarmTile": "warmup",
    "create_engine": "select",
    "create_lane": "select",
    "derive_ladder": "base.ladder",
    "warm": "warmup",
    "HostEngine": "base.engine",
    "ThreadedLane": "base.threaded_lane",
    "BuildFailed": _ERRORS,
    "EngineError": _ERRORS,
    "EngineFatal": _ERRORS,
    "LaneClosed": _ERRORS,
    "ModelLoadFailed": _ERRORS,
    "RepositoryError": _ERRORS,
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
