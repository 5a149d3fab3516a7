"""Many tiles: filling while another runs, and two lanes against one."""

from __future__ import annotations

import queue
import threading
import time
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any

import numpy as np
from ops.bench.gpu.tiles import bare
from ops.bench.gpu.workload import Workload, fill, lane, take, warm

from tensorq_engines.tensorrt.lane import TensorRtLane
from tensorq_engines.tensorrt.slot import TensorRtSlot


@dataclass(slots=True)
class Passage:
    """When a tile was where, in seconds of `time.perf_counter`."""

    slot_free: float
    acquired: float
    filled: float
    submitted: float
    done: float = 0.0

    def trace(self, began: float) -> dict[str, int]:
        """Microseconds since ``began``."""
        return {name: round((getattr(self, name) - began) * 1e6) for name in self.__slots__}


def filling_and_running(work: Workload, rows: int, budget_s: float) -> dict[str, Any]:
    """Microseconds a tile, filled on one thread and waited for on another as the worker does.

    Compared with the slower of filling and replaying alone; filling alone goes through the same slots.
    """
    inputs = work.inputs(rows)
    with lane(wait="spin", graph_trials=0) as one:
        warm(one, work, rows)
        fill_us = median(us for _ in range(25) for us in _fill_all(one, work, inputs))
        replay_us = median(bare(one, work, rows) for _ in range(50))
        passages = _pump(one, work, inputs, budget_s)
    started = passages[0].slot_free
    tile_us = (passages[-1].done - started) * 1e6 / len(passages)
    steady = list(pairwise(passages))[2:]
    return {
        "rows": rows,
        "fill_us": round(fill_us, 1),
        "replay_us": round(replay_us, 1),
        "pipelined_us": round(tile_us, 1),
        "ratio_to_slower": round(tile_us / max(fill_us, replay_us), 3),
        "filled_while_running": round(sum(a.done > b.acquired for a, b in steady) / len(steady), 3),
        "parts_us": {
            "wait_for_slot_to_acquired": _us(one.acquired - one.slot_free for one in passages),
            "fill": _us(one.filled - one.acquired for one in passages),
            "submit": _us(one.submitted - one.filled for one in passages),
            "submitted_to_done": _us(one.done - one.submitted for one in passages),
            "submitted_to_next_slot_free": _us(b.slot_free - a.submitted for a, b in steady),
        },
        "trace_us": [one.trace(started) for one in passages[len(passages) // 2 :][:5]],
    }


def two_lanes(work: Workload, rows: int, budget_s: float) -> dict[str, Any]:
    """Tiles a second of one lane and of two, each on a thread of its own with two slots in flight."""
    with lane(wait="spin", graph_trials=0) as first, lane(wait="spin", graph_trials=0) as second:
        lanes = [first, second]
        for one in lanes:
            warm(one, work, rows)
        counts: dict[int, list[float]] = {1: [], 2: []}
        for _ in range(3):
            for number in (1, 2):
                counts[number].append(_rate(lanes[:number], work, rows, budget_s / 6))
    one_rate, two_rate = (median(counts[number]) for number in (1, 2))
    return {
        "rows": rows,
        "one_lane_tiles_s": round(one_rate, 1),
        "two_lanes_tiles_s": round(two_rate, 1),
        "ratio": round(two_rate / one_rate, 3),
    }


def _pump(one: TensorRtLane, work: Workload, inputs: dict[str, np.ndarray], budget_s: float) -> list[Passage]:
    """Returns the tiles that went through, in order."""
    line: queue.SimpleQueue[tuple[TensorRtSlot, Passage] | None] = queue.SimpleQueue()
    free = threading.Semaphore(one.slot_count)
    passages: list[Passage] = []
    shapes = {name: array.shape for name, array in inputs.items()}

    def collect() -> None:
        while (item := line.get()) is not None:
            slot, passage = item
            slot.wait()
            passage.done = time.perf_counter()
            slot.release()
            free.release()

    collector = threading.Thread(target=collect)
    collector.start()
    now = started = time.perf_counter()
    while now - started < budget_s:
        free.acquire()
        slot_free = time.perf_counter()
        slot = one.acquire(work.engine, shapes)
        assert isinstance(slot, TensorRtSlot)
        acquired = time.perf_counter()
        for name, view in slot.inputs.items():
            np.copyto(view, inputs[name])
        filled = time.perf_counter()
        one.submit(slot)
        now = time.perf_counter()
        passages.append(Passage(slot_free, acquired, filled, now))
        line.put((slot, passages[-1]))
    line.put(None)
    collector.join()
    return passages


def _rate(lanes: list[TensorRtLane], work: Workload, rows: int, seconds: float) -> float:
    counts = [0] * len(lanes)
    until = time.perf_counter() + seconds

    def run(index: int) -> None:
        one, waiting = lanes[index], deque[TensorRtSlot]()
        while time.perf_counter() < until:
            slot = take(one, work, rows)
            one.submit(slot)
            waiting.append(slot)
            if len(waiting) == one.slot_count:
                waiting[0].wait()
                waiting.popleft().release()
                counts[index] += 1
        for slot in waiting:
            slot.wait()
            slot.release()

    threads = [threading.Thread(target=run, args=(index,)) for index in range(len(lanes))]
    started = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(counts) / (time.perf_counter() - started)


def _fill_all(one: TensorRtLane, work: Workload, inputs: dict[str, np.ndarray]) -> list[float]:
    """Microseconds to fill each slot, with nothing running; then their tiles run."""
    times, slots = [], []
    for _ in range(one.slot_count):
        started = time.perf_counter()
        slots.append(fill(one, work, inputs))
        times.append((time.perf_counter() - started) * 1e6)
    for slot in slots:
        one.submit(slot)
    for slot in slots:
        slot.wait()
        slot.release()
    return times


def _us(seconds: Iterable[float]) -> float:
    return round(median(seconds) * 1e6, 1)
