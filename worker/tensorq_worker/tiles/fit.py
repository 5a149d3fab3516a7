"""Fit: how the rows of a job lie in their bucket. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tensorq_engines import TileFailed


@dataclass(frozen=True, slots=True)
class Fit:
    """What a job's rows are padded to, and what of the outputs is theirs.

    Attributes:
        row_shapes: per input the padded shape of a row.
        fills: by input, what its padding holds; an input that is absent is never padded.
        cuts: by output, the axes to cut and the places to keep, the batch axis counted.
    """

    row_shapes: tuple[tuple[int, ...], ...]
    fills: Mapping[str, np.generic]
    cuts: Mapping[str, tuple[tuple[int, int], ...]]

    def place(self, name: str, rows: np.ndarray, view: np.ndarray) -> None:
        """Copies rows of input ``name`` into the first corner of ``view``, and its fill into the rest."""
        np.copyto(view[tuple(map(slice, rows.shape))], rows)
        for axis, length in enumerate(rows.shape):
            if length < view.shape[axis]:
                view[(slice(None),) * axis + (slice(length, None),)] = self.fills[name]

    def cut(self, outputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Returns views of a tile's outputs without what belongs to the padding.

        Raises:
            TileFailed: an output is shorter than the rule says, so the rule is wrong.
        """
        return {name: self._cut(name, array) for name, array in outputs.items()}

    def _cut(self, name: str, array: np.ndarray) -> np.ndarray:
        for axis, places in self.cuts.get(name, ()):
            if array.ndim <= axis or array.shape[axis] < places:
                raise TileFailed(
                    f"output {name!r} came with shape {list(array.shape)}, and its crop rule keeps {places} "
                    f"places of axis {axis}; correct axis, scale or round of its crop in model.toml"
                )
            array = array[(slice(None),) * axis + (slice(places),)]
        return array
