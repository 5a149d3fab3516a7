"""Casts: the dtypes in which jobs and an engine may differ, and how values cross. Pure.

TensorRT 8.6 has no int64 and makes int32 of it, no version has float64, and an engine built in half
precision may take float16. Nothing else is ever cast.
"""

from __future__ import annotations

import numpy as np

from tensorq_engines.base.errors import TileFailed

PAIRS = frozenset({("int64", "int32"), ("float64", "float32"), ("float32", "float16")})
"""What jobs carry, and what the engine may have instead: for inputs one way, for outputs the other."""


def is_carried(wire: str, engine: str) -> bool:
    """Tells whether a tensor of dtype ``wire`` in jobs can be one of dtype ``engine`` in the engine."""
    return wire == engine or (wire, engine) in PAIRS


def cast_in(name: str, source: np.ndarray, target: np.ndarray) -> None:
    """Writes a job's values into the engine's input.

    A whole number must survive. A float is rounded, and becomes infinite beyond the engine's range, as it
    would inside an engine of that precision.

    Raises:
        TileFailed: a whole number does not fit.
    """
    if source.dtype.kind == "i" and source.size:
        limits = np.iinfo(target.dtype)
        low, high = int(source.min()), int(source.max())
        if low < limits.min or high > limits.max:
            raise TileFailed(
                f"input {name!r}: got values {low}..{high}, and this engine takes {target.dtype}, "
                f"{limits.min}..{limits.max}; send values within it, or build with TensorRT 10 or newer"
            )
    with np.errstate(over="ignore"):
        np.copyto(target, source, casting="unsafe")


def cast_out(source: np.ndarray, wire: str) -> np.ndarray:
    """Returns the engine's output in the dtype that jobs carry; the same array where it is that already."""
    return source if source.dtype == wire else source.astype(wire)
