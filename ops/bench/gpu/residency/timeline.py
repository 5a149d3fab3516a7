"""Timeline: device memory while lru serves its rounds, with private and with shared activations."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from ops.bench.gpu.residency.articles import BUDGET_BYTES, Spawn, spawn
from ops.bench.gpu.residency.mode import Mode

LRU = Mode("lru", budget_bytes=BUDGET_BYTES, steady=1, sampled=True)
MODES = {"private": replace(LRU, arena="private"), "shared": LRU}


def measure(models: Path, spawn: Spawn = spawn) -> dict[str, Any]:
    """Returns points (seconds, bytes beyond the start) and when models were asked for, by kind of arena."""
    found: dict[str, Any] = {"budget_bytes": BUDGET_BYTES, "faults": []}
    for arena, mode in MODES.items():
        seen = spawn(models, mode)
        if "error" in seen:
            found["faults"].append(f"timeline, {arena}: {seen['error']}")
        keep = ("error", "points", "marks", "evictions", "rounds_ms", "charged_bytes")
        found[arena] = {key: seen[key] for key in keep if key in seen}
    return found
