"""Gpu: lanes, a loader and memory on a virtual clock."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

from ops.bench.residency.inputs import Model
from ops.bench.residency.rows import Queue
from ops.bench.residency.tiles import Tiles

from tensorq_engines import Evict, Residents, ResidentState


@dataclass(slots=True)
class Lane:
    """Tiles one after another: ``tiles`` running or filled, the last of them done at ``free_ms``."""

    tiles: int = 0
    free_ms: float = 0.0


class Gpu:
    """What a policy acts on.

    Args:
        models: all of them; none is loaded.
        residents: the account of memory, which knows the models.
        lanes: how many.
        max_delay_ms: how long rows may wait for company.

    Attributes:
        now_ms: the virtual time.
        queues: the jobs that wait, by model.
        loading: the model that is being loaded.
        busy_ms: time of all tiles.
    """

    def __init__(
        self, models: Sequence[Model], residents: Residents, lanes: int, max_delay_ms: float
    ) -> None:
        self.models = {model.name: model for model in models}
        self.residents = residents
        self.queues = {model.name: Queue() for model in models}
        self.tiles = {model.name: Tiles(model, max_delay_ms) for model in models}
        self.now_ms = 0.0
        self.loading: str | None = None
        self.busy_ms = 0.0
        self._lanes = [Lane() for _ in range(lanes)]
        self._ends: list[tuple[float, int, Lane | None, str]] = []
        self._number = count()

    @property
    def now_s(self) -> float:
        return self.now_ms / 1000

    def resident(self, name: str) -> bool:
        return self.residents[name].state is ResidentState.RESIDENT

    def free_lane(self) -> Lane | None:
        """The lane with fewest tiles, if it has a slot."""
        best = min(self._lanes, key=lambda lane: (lane.tiles, lane.free_ms))
        return best if best.tiles < self.residents.slots else None

    def launch(self, name: str, lane: Lane) -> None:
        """Puts the next tile of a resident model on a lane."""
        queue, start_ms = self.queues[name], max(self.now_ms, lane.free_ms)
        size = self.tiles[name].next_size(queue.rows)
        tile_ms = self.models[name].tile_ms[size]
        queue.take(size, start_ms)
        self.residents.use(name, self.now_s)
        lane.tiles += 1
        lane.free_ms = start_ms + tile_ms
        self.busy_ms += tile_ms
        heapq.heappush(self._ends, (lane.free_ms, next(self._number), lane, name))

    def load(self, name: str, waiting: Sequence[str]) -> None:
        """Begins to load a model; its victims leave at once."""
        room = self.residents.room_for(name, self.now_s, waiting)
        for victim in room.victims if isinstance(room, Evict) else ():
            self.residents.begin_eviction(victim)
            self.residents.evicted(victim)
        self.residents.begin_load(name, self.now_s)
        self.loading = name
        end_ms = self.now_ms + self.models[name].load_ms
        heapq.heappush(self._ends, (end_ms, next(self._number), None, name))

    def next_end_ms(self) -> float | None:
        """When the next tile or load ends."""
        return self._ends[0][0] if self._ends else None

    def advance(self, to_ms: float) -> None:
        """Ends the tiles and loads whose time has come."""
        self.now_ms = to_ms
        while self._ends and self._ends[0][0] <= to_ms:
            _, _, lane, name = heapq.heappop(self._ends)
            if lane is not None:
                lane.tiles -= 1
                self.residents.done(name, self.now_s)
            else:
                self.loading = None
                self.residents.loaded(name, self.now_s, self.models[name].load_ms / 1000)
