"""Articles: eager, lazy and lru as the article compared them, with private and with shared activations."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ops.bench.gpu.residency import article
from ops.bench.gpu.residency.engines import mib
from ops.bench.gpu.residency.mode import Mode, Order

SCRIPT = Path(__file__).with_name("mode.py")
LIMIT_S = 60.0
BUDGET_BYTES = 400_000_000
"""The article's 400 MB; in MB of 10**6, which is the smaller of the two readings."""
LEAST_TINY_BYTES, MOST_TINY_BYTES = 260_000_000, 330_000_000
LEAST_PRIVATE_BYTES = 600_000_000

MODES = (
    *(
        Mode(policy, arena, budget_bytes=BUDGET_BYTES if policy == "lru" else None)
        for arena in ("private", "auto")
        for policy in ("eager", "lazy", "lru")
    ),
    Mode("lru", lanes=2, budget_bytes=BUDGET_BYTES),
    Mode("lru", lanes=2, budget_bytes=2 * BUDGET_BYTES),
)

EAGER_PRIVATE, LRU_PRIVATE, LRU_SHARED = MODES[0].name, MODES[2].name, MODES[5].name

Spawn = Callable[[Path, Mode], dict[str, Any]]


def spawn(models: Path, mode: Mode) -> dict[str, Any]:
    """Runs a mode in a process of its own; what went wrong comes back as ``error``."""
    order = Order(str(models), mode, time.monotonic())
    try:
        done = subprocess.run(
            [sys.executable, str(SCRIPT), order.to_json()],
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {"error": f"not done after {LIMIT_S:.0f} s"}
    # Libraries may print as well.
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if not lines:
        return {"error": f"exit status {done.returncode}: {done.stderr.strip()[-1500:]}"}
    found: dict[str, Any] = json.loads(lines[-1])
    return found | {"exit_status": done.returncode}


def measure(models: Path, spawn: Spawn = spawn) -> dict[str, Any]:
    """Runs all modes, one after another."""
    # The first process finds libraries and plans on disk, the others in memory.
    cold = spawn(models, Mode("lazy", rounds=1, steady=1))
    modes = {mode.name: spawn(models, mode) for mode in MODES}
    return {
        "cold_start_s": cold.get("ready_s"),
        "modes": modes,
        "article": {"strategies": article.STRATEGIES, "rounds_ms": article.ROUNDS_MS},
        "faults": faults(modes),
    }


def faults(modes: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Returns what must hold and does not."""
    found = [f"articles, {name}: {mode['error']}" for name, mode in modes.items() if "error" in mode]
    found += [
        f"articles, {name}: the process ended with status {mode['exit_status']} after it was done"
        for name, mode in modes.items()
        if mode.get("exit_status")
    ]
    if "error" not in modes[EAGER_PRIVATE]:
        found += _size_faults(modes[EAGER_PRIVATE])
    shared, private = modes[LRU_SHARED], modes[LRU_PRIVATE]
    if "error" not in shared:
        if evicted := sum(shared["evictions"].values()):
            found.append(f"articles, {LRU_SHARED}: {evicted} evictions, expected none")
        if refused := shared["refused"]:
            found.append(f"articles, {LRU_SHARED}: {', '.join(refused)} refused, expected none")
        if shared["charged_bytes"] > BUDGET_BYTES:
            found.append(f"articles, {LRU_SHARED}: {mib(shared['charged_bytes'])} MiB are charged")
    if "error" not in private and not sum(private["evictions"].values()):
        found.append(f"articles, {LRU_PRIVATE}: no evictions, expected some")
    return found


def _size_faults(eager: Mapping[str, Any]) -> list[str]:
    found = []
    tiny = eager["activation_bytes"]["tiny_cnn"]
    if not LEAST_TINY_BYTES <= tiny <= MOST_TINY_BYTES:
        found.append(
            f"articles: tiny_cnn's activations are {tiny / 1e6:.0f} MB, expected "
            f"{LEAST_TINY_BYTES / 1e6:.0f} to {MOST_TINY_BYTES / 1e6:.0f}"
        )
    if eager["charged_bytes"] <= LEAST_PRIVATE_BYTES:
        found.append(
            f"articles: with private activations {eager['charged_bytes'] / 1e6:.0f} MB are charged, "
            f"expected more than {LEAST_PRIVATE_BYTES / 1e6:.0f}"
        )
    return found
