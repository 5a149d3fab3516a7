"""Liveness: bytes of tensors that exist at once while kernels run one after the other. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from tensorq_engines.sizing.kernels import Step


def peak_bytes(steps: Sequence[Step], sizes: Mapping[str, int], copied: Collection[str] = ()) -> int:
    """Returns the most that is alive at once; a tensor lives from its maker to its last reader.

    Args:
        steps: in the order in which they run.
        sizes: bytes of each tensor; one that is absent takes no memory here.
        copied: tensors that nothing makes, of which the first reader makes a copy.
    """
    last = {name: index for index, step in enumerate(steps) for name in step.reads}
    alive: dict[str, int] = {}
    peak = 0
    for index, step in enumerate(steps):
        arriving = (name for name in step.reads if name in copied)
        alive.update((name, sizes.get(name, 0)) for name in (*arriving, *step.makes))
        peak = max(peak, sum(alive.values()))
        alive = {name: size for name, size in alive.items() if last.get(name, -1) > index}
    return peak
