"""Options of TensorRT's lanes and graphs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ArenaKind = Literal["auto", "growing", "moving", "private"]
WaitKind = Literal["auto", "spin", "sleep"]


@dataclass(frozen=True, slots=True)
class LaneOptions:
    """How a lane keeps memory, captures and waits.

    Attributes:
        arena: ``growing`` maps activation memory to the end of a reserved range; ``moving`` allocates it
            anew when it must grow; ``private`` gives every context its own, for comparison; ``auto`` is
            growing where the device can, else moving.
        graphs: whether tiles are captured at all.
        graph_limit: graphs of one model on this lane; the least recently used goes.
        graph_after: runs of a tile's shapes before it is captured, where its size is not a hot one.
        graph_trials: how often a short tile's first graph is measured against eager runs, to be kept only
            where it is not slower; 0 keeps all.
        serialize: whether this lane's tiles wait for those of other lanes that serialize too; for GPUs or
            drivers on which graphs of two contexts must not run at once.
        wait: ``sleep`` waits for tiles without a core, and wakes some 80 us late; ``spin`` keeps a core busy
            instead, though not the GIL; ``auto`` spins where there are at least 4 cores for each lane.
    """

    arena: ArenaKind = "auto"
    graphs: bool = True
    graph_limit: int = 32
    graph_after: int = 3
    graph_trials: int = 7
    serialize: bool = False
    wait: WaitKind = "auto"
