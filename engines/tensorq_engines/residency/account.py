"""Account: the memory that a set of models is promised. Pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from tensorq_engines.base.footprint import Footprint


@dataclass(frozen=True, slots=True)
class Account:
    """Bytes, by what they are for.

    Attributes:
        weights_bytes: of all models.
        contexts_bytes: what the models' contexts keep, on all lanes.
        arenas_bytes: activations, on all lanes.
        io_bytes: inputs and outputs where the engine computes, on all lanes.
        pinned_bytes: page-locked host memory of all slots; apart from the others, with a limit of its own.
    """

    weights_bytes: int = 0
    contexts_bytes: int = 0
    arenas_bytes: int = 0
    io_bytes: int = 0
    pinned_bytes: int = 0

    @property
    def total_bytes(self) -> int:
        """What counts towards the budget: all but page-locked memory."""
        return self.weights_bytes + self.contexts_bytes + self.arenas_bytes + self.io_bytes


def charge(footprints: Collection[Footprint], lanes: int, *, shared: bool, slots: int) -> Account:
    """Returns what models of these footprints need, all loaded at once.

    Weights are the engine's, contexts come once a lane, and inputs and outputs belong to the lane, which
    holds the largest. Activations do too where they are shared; else every model has its own on every lane.

    Args:
        footprints: one a model.
        lanes: how many run them.
        shared: whether a lane's models share one arena.
        slots: staging areas of a lane, each as large as the largest model asks for.
    """
    arenas = [footprint.arena_bytes for footprint in footprints]
    return Account(
        weights_bytes=sum(footprint.weights_bytes for footprint in footprints),
        contexts_bytes=lanes * sum(footprint.context_bytes for footprint in footprints),
        arenas_bytes=lanes * (max(arenas, default=0) if shared else sum(arenas)),
        io_bytes=lanes * max((footprint.io_bytes for footprint in footprints), default=0),
        pinned_bytes=lanes * slots * max((footprint.pinned_bytes for footprint in footprints), default=0),
    )
