"""Waiting: whether threads that wait for tiles spin or sleep."""

from __future__ import annotations

from tensorq_engines.base.processor import usable_cores
from tensorq_engines.tensorrt.options import WaitKind

CORES_PER_LANE = 4
"""Of these one waits; the others stage, pack and talk to Redis."""


def spins(kind: WaitKind, lanes: int) -> bool:
    """Tells whether a lane's waits keep a core busy.

    Args:
        kind: what its options say.
        lanes: lanes of this process, this one included.
    """
    return kind == "spin" or (kind == "auto" and usable_cores() >= CORES_PER_LANE * lanes)
