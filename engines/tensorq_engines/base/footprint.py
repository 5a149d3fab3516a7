"""Footprint: the memory that a model asks for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Footprint:
    """Bytes of a model, before it is loaded where the engine can tell.

    The weights belong to the engine. What contexts keep comes once for every lane that runs the model. The
    other three are what a lane must have to run the model's largest tile; they belong to the lane, which
    serves all its models from one of each.

    Attributes:
        weights_bytes: parameters, in the memory where the engine computes.
        arena_bytes: activations alive at once, inputs and outputs apart.
        io_bytes: inputs and outputs, in the memory where the engine computes.
        pinned_bytes: page-locked host memory of one slot.
        context_bytes: what the model's contexts on one lane, one for each profile, keep for themselves.
    """

    weights_bytes: int = 0
    arena_bytes: int = 0
    io_bytes: int = 0
    pinned_bytes: int = 0
    context_bytes: int = 0
