"""Where and on what figures were taken."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any

from ops.bench import proc
from redis import Redis
from redis.utils import HIREDIS_AVAILABLE

PACKAGES = ("tensorq", "rq", "redis", "numpy", "onnxruntime")


def describe(redis: Redis) -> dict[str, Any]:
    """Versions, date and machine; the load is that of the minute before."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "cores": len(os.sched_getaffinity(0)),
        "cpu": proc.cpu_model(),
        "load_1min": round(os.getloadavg()[0], 2),
        "kernel": platform.release(),
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in PACKAGES},
            "hiredis": version("hiredis") if HIREDIS_AVAILABLE else None,
            "redis-server": redis.info("server")["redis_version"],
        },
    }
