"""Policies: what to do next. The worker's own, and what it is compared with."""

from __future__ import annotations

from typing import Protocol

from ops.bench.residency.gpu import Gpu

from tensorq_engines import Evict, Fits
from tensorq_worker.scheduler import Candidate, Turns, choose


class Policy(Protocol):
    """Decides on a GPU's next acts."""

    def act(self, gpu: Gpu) -> float | None:
        """Does all that can be done now; returns in how many ms to be called at the latest."""


class FirstCome:
    """First come, first served, and plain LRU: the oldest job's model is loaded in line, others wait."""

    def act(self, gpu: Gpu) -> float | None:
        while not gpu.loading:
            waits_ms = {
                name: gpu.tiles[name].wait_ms(queue.rows, gpu.now_ms - queue.oldest_ms())
                for name, queue in gpu.queues.items()
                if queue.rows
            }
            ready = [name for name, wait_ms in waits_ms.items() if wait_ms <= 0]
            lane = gpu.free_lane()
            if not ready or lane is None:
                return min((wait_ms for wait_ms in waits_ms.values() if wait_ms > 0), default=None)
            oldest = min(ready, key=lambda name: gpu.queues[name].oldest_ms())
            if gpu.resident(oldest):
                gpu.launch(oldest, lane)
            elif isinstance(gpu.residents.room_for(oldest, gpu.now_s), Fits | Evict):
                gpu.load(oldest, ())
            else:
                return None
        return None


class Aware:
    """The worker's scheduler.

    Args:
        ageing: whether queues become due; without it those of models that are not loaded can starve.
    """

    def __init__(self, ageing: bool = True) -> None:
        self._ageing = ageing
        self._turns = Turns()

    def act(self, gpu: Gpu) -> float | None:
        while True:
            waiting = [name for name, queue in gpu.queues.items() if queue.rows]
            self._turns.note(waiting, gpu.now_ms)
            lane = gpu.free_lane()
            if lane is None and gpu.loading:
                return None
            choice = choose(
                [self._candidate(gpu, name, lane is not None) for name in waiting],
                lambda name: gpu.residents.room_for(name, gpu.now_s, waiting),  # noqa: B023
                now_s=gpu.now_s,
                loading=[gpu.loading] if gpu.loading else (),
                lately=gpu.residents.lately(gpu.now_s),
            )
            if choice.load is not None:
                gpu.load(choice.load, waiting)
            if choice.tile is not None and lane is not None:
                gpu.launch(choice.tile.model, lane)
                self._turns.served(choice.tile.model, gpu.now_ms)
            elif choice.load is None:
                return choice.again_ms

    def _candidate(self, gpu: Gpu, name: str, lane_free: bool) -> Candidate[str]:
        queue, model, tiles = gpu.queues[name], gpu.models[name], gpu.tiles[name]
        age_ms = gpu.now_ms - queue.oldest_ms()
        size = tiles.next_size(queue.rows)
        return Candidate(
            name,
            name,
            age_ms,
            tiles.wait_ms(queue.rows, age_ms),
            rows=queue.rows,
            tile_rows=min(size, queue.rows),
            tile_ms=model.tile_ms[size],
            unserved_ms=self._turns.unserved_ms(name, gpu.now_ms) if self._ageing else 0.0,
            resident=gpu.resident(name),
            load_ms=model.load_ms,
            stay_ms=1000 * gpu.residents.stay_s(name),
            lane_free=lane_free,
        )
