"""Lanes with their collectors: where tiles go, and how many are on their way."""

from __future__ import annotations

import time
from collections.abc import Callable

from tensorq_engines import Engine, Lane, Slot, create_lane
from tensorq_worker.loop.collector import Collector
from tensorq_worker.loop.launched import Launched
from tensorq_worker.tiles import Tile


class DrivenLane:
    """A lane and the collector that waits for its tiles.

    Args:
        lane: runs tiles.
        collector: takes them over once submitted.
        number: its place among the worker's lanes.
        busy: how many lanes have tiles under way, this one included.
    """

    def __init__(self, lane: Lane, collector: Collector, number: int, busy: Callable[[], int]) -> None:
        self.lane = lane
        self.collector = collector
        self._number = number
        self._busy = busy
        self._submitted = 0

    @property
    def free_slots(self) -> int:
        """Slots that a tile could take now."""
        return self.lane.slot_count - self.collector.in_slots

    def next_place(self) -> tuple[str, list[str]]:
        """Names the lane and slot of the next tile, and those whose tiles have ended."""
        slots = self.lane.slot_count
        places = [f"{self._number}:{(self._submitted + n) % slots}" for n in range(slots)]
        # A lane is in order: the tiles still in slots are those submitted last.
        return places[0], places[1 : slots - self.collector.in_slots]

    def submit(self, slot: Slot, tile: Tile) -> None:
        """Queues a filled slot's tile to run."""
        now_s = time.time()
        timeouts = [part.run.job.timeout_s for part in tile.parts if part.run.job.timeout_s > 0]
        for part in tile.parts:
            part.run.started_s = part.run.started_s or now_s
        self.lane.submit(slot)
        self._submitted += 1
        # A tile of an engine that idled before is slower: caches are cold and clocks are low.
        alone = self._alone if self.collector.in_slots and self._alone() else None
        self.collector.put(Launched(tile, slot, alone, min(timeouts, default=None)))

    def _alone(self) -> bool:
        return self._busy() == 1


class Lanes:
    """The worker's lanes, made when a kind of engine is first used.

    Args:
        per_kind: lanes of each kind.
        slots: staging areas a lane.
        new_collector: makes the collector of a new lane.
        attach: is told of each new lane.
    """

    def __init__(
        self,
        per_kind: int,
        slots: int,
        new_collector: Callable[[], Collector],
        attach: Callable[[Lane], None] = lambda lane: None,
    ) -> None:
        self._per_kind = per_kind
        self._slots = slots
        self._new_collector = new_collector
        self._attach = attach
        self._lanes: dict[str, list[DrivenLane]] = {}

    def free(self, engine: Engine) -> DrivenLane | None:
        """The lane of the engine's kind with most free slots; None where all are full."""
        best = max(self.of(engine.kind), key=lambda lane: lane.free_slots)
        return best if best.free_slots > 0 else None

    def of(self, kind: str) -> list[DrivenLane]:
        """All lanes of a kind."""
        if kind not in self._lanes:
            number = len(self._all())
            self._lanes[kind] = [
                DrivenLane(create_lane(kind, self._slots), self._new_collector(), number + n, self._busy)
                for n in range(self._per_kind)
            ]
            for lane in self._lanes[kind]:
                self._attach(lane.lane)
                lane.collector.start()
        return self._lanes[kind]

    def __len__(self) -> int:
        """Lanes that there are."""
        return len(self._all())

    @property
    def pending(self) -> int:
        """Tiles that are not dealt with yet: running, or their results on the way to Redis."""
        return sum(lane.collector.pending for lane in self._all())

    def overdue_s(self) -> float:
        """Seconds by which the most overdue tile exceeds its shortest timeout; 0 or less where none does."""
        return max((lane.collector.overdue_s() for lane in self._all()), default=0.0)

    def close(self, timeout_s: float | None = None) -> bool:
        """Deals with what is pending, for up to ``timeout_s`` a lane; returns whether all was."""
        done = True
        for lane in self._all():
            if lane.collector.close(timeout_s):
                lane.lane.close()
            else:
                done = False
        return done

    def _busy(self) -> int:
        return sum(lane.collector.in_slots > 0 for lane in self._all())

    def _all(self) -> list[DrivenLane]:
        return [lane for lanes in list(self._lanes.values()) for lane in lanes]
