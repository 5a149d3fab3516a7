"""Processor: which CPU this is, and how much of it this process may use."""

from __future__ import annotations

import os
import platform
from pathlib import Path

QUOTA = Path("/sys/fs/cgroup/cpu.max")
CPUINFO = Path("/proc/cpuinfo")


def usable_cores() -> float:
    """Returns the cores that this process may use at once, by affinity and by a container's quota."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        quota, period = QUOTA.read_text(encoding="ascii").split()
        return min(cores, int(quota) / int(period))
    except (OSError, ValueError):  # no such file, or "max": no quota
        return cores


def processor() -> str:
    """Returns the CPU's name as its maker gives it, or the least that the system tells."""
    try:
        for line in CPUINFO.read_text(encoding="utf-8").splitlines():
            key, _, name = line.partition(":")
            if key.strip() == "model name":
                return name.strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
