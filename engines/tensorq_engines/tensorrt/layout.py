"""Layout: where the tensors of a tile lie in a block of memory. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

ALIGN_BYTES = 256
"""TensorRT's alignment of tensors and of activation memory."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor of one tile.

    Attributes:
        name: its name in the engine.
        dtype: numpy's name of the engine's dtype.
        shape: all axes.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """Its bytes."""
        return math.prod(self.shape) * np.dtype(self.dtype).itemsize


@dataclass(frozen=True, slots=True)
class Layout:
    """Tensors in a row, each aligned; the same on the host and on the device, so that one copy moves all.

    Attributes:
        places: tensors and their offsets in bytes.
        size: bytes from the first tensor to the end of the last.
    """

    places: tuple[tuple[Tensor, int], ...]
    size: int

    @classmethod
    def of(cls, tensors: Iterable[Tensor]) -> Layout:
        """Lays tensors out in the order given."""
        places, end = [], 0
        for tensor in tensors:
            offset = aligned(end)
            places.append((tensor, offset))
            end = offset + tensor.size
        return cls(tuple(places), end)

    def views(self, block: np.ndarray) -> dict[str, np.ndarray]:
        """Returns one C-order view a tensor over ``uint8`` memory that holds at least `size` bytes."""
        return {
            tensor.name: np.ndarray(tensor.shape, tensor.dtype, buffer=block.data, offset=offset)
            for tensor, offset in self.places
        }

    def addresses(self, base: int) -> Mapping[str, int]:
        """Returns each tensor's address for a block that begins at ``base``."""
        return {tensor.name: base + offset for tensor, offset in self.places}


def aligned(size: int) -> int:
    """Returns ``size`` rounded up to the alignment."""
    return -(-size // ALIGN_BYTES) * ALIGN_BYTES
