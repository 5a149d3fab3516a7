"""Wire: an input whose rows travel as bytes and become the model's numbers inside the engine."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Wire:
    """How one input travels: the model computes on ``(sent - mean) * scale``.

    Attributes:
        name: the input.
        dtype: numpy name of the dtype that jobs send.
        scale: one factor, or one for each place of ``axis``.
        mean: one value in the units that are sent, or one for each place of ``axis``.
        axis: the axis that ``scale`` and ``mean`` run along where they are more than one.
    """

    name: str
    dtype: str = "uint8"
    scale: tuple[float, ...] = (1.0,)
    mean: tuple[float, ...] = (0.0,)
    axis: int = 1

    def spread(self, values: tuple[float, ...], rank: int) -> np.ndarray:
        """Returns ``values`` as float32 that broadcasts over an array of ``rank`` axes."""
        shape = [1] * rank
        if len(values) > 1:
            shape[self.axis] = len(values)
        return np.array(values, np.float32).reshape(shape)

    def normalise(self, sent: np.ndarray) -> np.ndarray:
        """Returns what the model computes on, in float32."""
        mean, scale = (self.spread(values, sent.ndim) for values in (self.mean, self.scale))
        normal: np.ndarray = (sent.astype(np.float32) - mean) * scale
        return normal
