"""Staging: one slot's memory in pageable host memory, kept from tile to tile."""

from __future__ import annotations

import math

import numpy as np

from tensorq.signature import Signature
from tensorq_engines.base.admission import Shapes

ALIGN_BYTES = 64


class Staging:
    """A buffer that grows to the largest tile's inputs and is laid out anew for each tile."""

    def __init__(self) -> None:
        self._buffer = np.empty(0, np.uint8)

    def lay_out(self, signature: Signature, shapes: Shapes) -> dict[str, np.ndarray]:
        """Returns one writable C-order view an input, aligned, with the bytes of earlier tiles in it."""
        places = []
        end = 0
        for spec in signature.inputs:
            dtype, shape = np.dtype(spec.dtype), shapes[spec.name]
            places.append((spec.name, dtype, shape, end))
            end += _aligned(dtype.itemsize * math.prod(shape))
        if self._buffer.nbytes < end + ALIGN_BYTES:
            self._buffer = np.empty(end + ALIGN_BYTES, np.uint8)
        start = -self._buffer.ctypes.data % ALIGN_BYTES
        return {
            name: np.ndarray(shape, dtype, buffer=self._buffer.data, offset=start + offset)
            for name, dtype, shape, offset in places
        }


def _aligned(size: int) -> int:
    return -(-size // ALIGN_BYTES) * ALIGN_BYTES
