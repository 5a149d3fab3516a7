"""Batch axis: whether the first axis of a model's tensors counts rows. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from tensorq.signature import TensorSpec
from tensorq_engines.onnx_model.tensors import UNKNOWN_RANK

BatchAxis = Literal[0, "none"]


def derive_batch_axis(inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec]) -> int | None:
    """Returns 0 where the first axis of all tensors is free, or fixed at one length in all; else None."""
    specs = [*inputs, *outputs]
    if any(not spec.shape or spec.shape == UNKNOWN_RANK for spec in specs):
        return None
    return 0 if len({_first(spec) for spec in specs}) == 1 else None


def objection(inputs: Sequence[TensorSpec], outputs: Sequence[TensorSpec]) -> str | None:
    """Returns why the first axis cannot be the batch axis though model.toml says so, or None.

    An output of unknown rank is taken on trust: its rows are checked when it runs.
    """
    known = [spec for spec in (*inputs, *outputs) if spec.shape != UNKNOWN_RANK]
    if scalar := next((spec for spec in known if not spec.shape), None):
        return f"{scalar} is a scalar and has no first axis"
    lead = inputs[0]
    if other := next((spec for spec in known if _first(spec) != _first(lead)), None):
        return f"the first axes of {lead} and {other} are not the same fixed length, nor both free"
    return None


def _first(spec: TensorSpec) -> int | None:
    first = spec.shape[0]
    return first if isinstance(first, int) else None
