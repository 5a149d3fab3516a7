"""Views: arrays over one slot's page-locked memory, made once for all tiles of one form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from tensorq_engines.tensorrt.form import Form
    from tensorq_engines.tensorrt.staging import Staging


@dataclass(slots=True)
class TileViews:
    """Arrays that live as long as the memory stays where it is.

    Attributes:
        inputs: writable, in the engine's dtypes.
        outputs: what `Slot.wait` gives, where it is these views for every tile; None until the first is read.
        blocks: the memory of inputs and of outputs.
    """

    inputs: Mapping[str, np.ndarray]
    outputs: Mapping[str, np.ndarray] | None
    blocks: tuple[np.ndarray, np.ndarray]

    @classmethod
    def of(cls, form: Form, staging: Staging) -> TileViews:
        """Returns the views of a form's tiles in a slot, whose memory is reserved."""
        found = form.views.get(staging.index)
        inputs, outputs = staging.inputs.array, staging.outputs.array
        if found is None or found.blocks[0] is not inputs or found.blocks[1] is not outputs:
            found = cls(form.inputs.views(inputs), None, (inputs, outputs))
            form.views[staging.index] = found
        return found
