"""Buckets: the few lengths that a free axis is padded up to. Pure."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

from tensorq.signature import Signature, TensorSpec

Fill = int | float
Fills = Fill | Mapping[str, Fill]


@dataclass(frozen=True, slots=True)
class Crop:
    """How much of one output's axis belongs to a row: ``length * scale + offset``, rounded.

    Attributes:
        output: the output.
        axis: its axis, the batch axis counted.
        scale: places of the output for one place of the row.
        offset: places added before rounding.
        round: which way a fraction goes.
    """

    output: str
    axis: int
    scale: float = 1.0
    offset: float = 0.0
    round: Literal["ceil", "floor"] = "ceil"

    def places(self, length: int) -> int:
        """Returns the places that are kept for a row of ``length``."""
        # As the decimals that were written: 10 * 1.1 is 11 then, and more than that in binary.
        exact = length * Fraction(repr(self.scale)) + Fraction(repr(self.offset))
        return max(0, math.ceil(exact) if self.round == "ceil" else math.floor(exact))


@dataclass(frozen=True, slots=True)
class Buckets:
    """The buckets of one free axis.

    Attributes:
        axis: the axis: its symbol in the model, wherever it stands in an input, or ``INPUT.AXIS``, the batch
            axis counted.
        lengths: the buckets, ascending.
        fill: what the padding holds, in the units that are sent: one value, or one an input, 0 elsewhere.
        crops: how outputs are cut back; others are left as they are.
    """

    axis: str
    lengths: tuple[int, ...]
    fill: Fills = 0
    crops: tuple[Crop, ...] = ()

    def places(self, signature: Signature) -> list[tuple[TensorSpec, int]]:
        """Returns the inputs' axes that are meant, the batch axis never among them."""
        return [
            (spec, axis)
            for spec in signature.inputs
            for axis, length in enumerate(spec.shape)
            if isinstance(length, str)
            and axis != signature.batch_axis
            and self.axis in (length, f"{spec.name}.{axis}")
        ]

    def fill_of(self, name: str) -> Fill:
        """Returns what the padding of one input holds."""
        return self.fill.get(name, 0) if isinstance(self.fill, Mapping) else self.fill

    def bucket(self, length: int) -> int | None:
        """Returns the least bucket that holds ``length``, or None where it exceeds all."""
        index = bisect_left(self.lengths, length)
        return self.lengths[index] if index < len(self.lengths) else None
