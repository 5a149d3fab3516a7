"""Outputs: what an engine gave, checked before any of it reaches a job. Pure."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tensorq.signature import Signature
from tensorq_engines.base.admission import Shapes
from tensorq_engines.base.errors import TileFailed


def check_outputs(
    signature: Signature, shapes: Shapes, outputs: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """Returns read-only C-order views of a tile's outputs, in the signature's order.

    Args:
        signature: the model's.
        shapes: the tile's input shapes.
        outputs: what the engine gave.

    Raises:
        TileFailed: with a batch axis, an output whose first axis is not the tile's rows: splitting it
            would hand rows to the wrong jobs.
    """
    views = {}
    rows = shapes[signature.inputs[0].name][0] if signature.batch_axis == 0 else None
    for spec in signature.outputs:
        # A view, because the flag set below must not stick to an array that the engine may own.
        view = np.asarray(outputs[spec.name], order="C").view()
        if rows is not None and view.shape[:1] != (rows,):
            raise TileFailed(
                f"output {spec} came with shape {list(view.shape)} for a tile of {rows} rows: its first axis "
                'is not the batch; set batch_axis = "none" in model.toml'
            )
        view.flags.writeable = False
        views[spec.name] = view
    return views
