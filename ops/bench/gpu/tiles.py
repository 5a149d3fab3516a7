"""One tile at a time: graph against eager, and submit and wait against a bare replay."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

from ops.bench.gpu.workload import Workload, interleaved, lane, rounds_for, take, turn, warm

from tensorq_engines.tensorrt.lane import TensorRtLane
from tensorq_engines.tensorrt.options import WaitKind

WAITS: tuple[WaitKind, ...] = ("spin", "sleep")


def graph_against_eager(work: Workload, budget_s: float) -> dict[str, Any]:
    """Whole pipelines, copy in to copy out, on slots already filled; all wait alike, on a busy core.

    ``lane`` is what a lane chooses by itself: it keeps a graph only where replaying was not slower.
    """
    found = {}
    with (
        lane(wait="spin", graph_trials=0) as replaying,
        lane(wait="spin", graphs=False) as eager,
        lane(wait="spin") as choosing,
    ):
        lanes = (replaying, eager, choosing)
        for rows in work.engine.ladder:
            for one in lanes:
                warm(one, work, rows)
            first = _turn(eager, work, rows)
            graph_us, eager_us, lane_us = interleaved(
                rounds_for(3 * first, budget_s / len(work.engine.ladder)),
                *(partial(_turn, one, work, rows) for one in lanes),
            )
            found[str(rows)] = {
                "graph_us": round(graph_us, 1),
                "eager_us": round(eager_us, 1),
                "lane_us": round(lane_us, 1),
                "graph_speedup": round(eager_us / graph_us, 3),
                "lane_speedup": round(eager_us / lane_us, 3),
                "lane_replays": _replays(choosing, work, rows),
            }
    return found


def submit_against_replay(work: Workload, rows: int, budget_s: float) -> dict[str, Any]:
    """What a lane adds to a loop that only launches the graph and waits for the stream."""
    found: dict[str, Any] = {"rows": rows}
    for wait in WAITS:
        with lane(wait=wait, graph_trials=0) as one:
            warm(one, work, rows)
            first = _turn(one, work, rows)
            bare_us, lane_us = interleaved(
                rounds_for(2 * first, budget_s / 2),
                partial(bare, one, work, rows),
                partial(_turn, one, work, rows),
            )
        found[wait] = {
            "bare_us": round(bare_us, 1),
            "lane_us": round(lane_us, 1),
            "ratio": round(lane_us / bare_us, 3),
        }
    return found


def bare(one: TensorRtLane, work: Workload, rows: int) -> float:
    """Microseconds of one launch and one wait for the stream, without lane and slot."""
    slot = take(one, work, rows)
    graph = slot.seat.graphs.find(slot.form, slot.staging.index)
    device = one._device
    assert graph is not None
    assert device is not None
    started = time.perf_counter()
    graph.launch(device.stream)
    device.stream.synchronize()
    us = (time.perf_counter() - started) * 1e6
    slot.release()
    return us


def _turn(one: TensorRtLane, work: Workload, rows: int) -> float:
    slot = take(one, work, rows)
    us = turn(one, slot)
    slot.release()
    return us


def _replays(one: TensorRtLane, work: Workload, rows: int) -> bool:
    slot = take(one, work, rows)
    slot.release()
    return slot.form.eager is None
