"""Waiting: whether threads that wait for tiles spin or sleep."""

from __future__ import annotations

import os
from pathlib import Path

from tensorq_engines.tensorrt.options import WaitKind

CORES_PER_LANE = 4
"""Of these one waits; the others stage, pack and talk to Redis."""

QUOTA = Path("/sys/fs/cgroup/cpu.max")


def spins(kind: WaitKind, lanes: int) -> bool:
    """Tells whether a lane's waits keep a core busy.

    Args:
        kind: what its options say.
        lanes: lanes of this process, this one included.
    """
    return kind == "spin" or (kind == "auto" and usable_cores() >= CORES_PER_LANE * lanes)


def usable_cores() -> float:
    """Returns the cores that this process may use at once, by affinity and by a container's quota."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = QUOTA.read_text(encoding="ascii").split()
        return min(cores, int(quota) / int(period))
    except (OSError, ValueError):  # no such file, or "max": no quota
        return cores
