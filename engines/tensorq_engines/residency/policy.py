"""Policy: when a model is loaded and whether it may leave again."""

from __future__ import annotations

from enum import StrEnum


class LoadPolicy(StrEnum):
    """``load`` of a model, as in model.toml and on the worker's command line.

    EAGER is loaded at start and stays. LAZY is loaded at first use, evicts nobody and stays. LRU is loaded
    at first use, evicts others of its kind for it, and may be evicted.
    """

    EAGER = "eager"
    LAZY = "lazy"
    LRU = "lru"


class ResidentState(StrEnum):
    """Where a model is between being only known and being loaded."""

    ABSENT = "absent"
    LOADING = "loading"
    RESIDENT = "resident"
    EVICTING = "evicting"
    FAILED = "failed"
