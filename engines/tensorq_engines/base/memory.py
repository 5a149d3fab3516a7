"""Memory: what engines and lanes have taken by now, where `Footprint` is what they ask for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EngineMemory:
    """Bytes that an engine has taken in the memory where it computes; all 0 while it is not loaded.

    Attributes:
        weights_bytes: parameters.
        context_bytes: what the contexts that there are, on all lanes, keep for themselves.
        arena_bytes: activations that no lane shares out: those of contexts with memory of their own.
    """

    weights_bytes: int = 0
    context_bytes: int = 0
    arena_bytes: int = 0

    @property
    def total_bytes(self) -> int:
        """All of it."""
        return self.weights_bytes + self.context_bytes + self.arena_bytes


@dataclass(frozen=True, slots=True)
class LaneMemory:
    """Bytes that a lane has taken.

    Attributes:
        arena_bytes: activations, where the engines compute; what private contexts have is not in it.
        io_bytes: inputs and outputs, where the engines compute.
        pinned_bytes: page-locked, of all slots.
    """

    arena_bytes: int = 0
    io_bytes: int = 0
    pinned_bytes: int = 0

    @property
    def total_bytes(self) -> int:
        """What is not page-locked."""
        return self.arena_bytes + self.io_bytes
