"""Arenas, and what is given back."""

import pytest

from gpu.tiles import FREE, largest_free, same, tile
from tensorq_engines.tensorrt.lane import TensorRtLane
from tensorq_engines.tensorrt.options import LaneOptions
from tensorq_engines.tensorrt.pinned import LEDGER

MB = 1024 * 1024


@pytest.mark.parametrize("arena", ["growing", "moving"])
def test_the_arena_grows_and_shrinks_under_graphs_and_results_stay_bit_equal(
    open_model, open_lane, eager, arena, fact
):
    lane = open_lane(arena=arena)
    tiny, rec, det = (open_model(name) for name in ("tiny", "rec", "det"))
    wants = {}
    for engine in (tiny, rec, det):
        inputs = tile(engine, engine.ladder[1], seed=7)
        wants[engine.name] = (inputs, eager.run(engine, inputs))

    def check(engine):
        inputs, want = wants[engine.name]
        return same(lane.run(engine, inputs), want)

    # Page-locked memory moves when it grows, and drops graphs: here it has its size from the start.
    assert all(check(engine) for engine in (rec, det) for _ in range(2))
    for engine in (rec, det):
        engine.close()
    sizes = []
    assert all(check(tiny) for _ in range(3))
    sizes.append(lane.memory.arena_bytes)
    rec.load()
    assert all(check(engine) for _ in range(10) for engine in (rec, tiny))
    sizes.append(lane.memory.arena_bytes)
    det.load()
    assert all(check(engine) for _ in range(10) for engine in (det, rec, tiny))
    sizes.append(lane.memory.arena_bytes)
    for engine in (det, rec):
        engine.close()
        sizes.append(lane.memory.arena_bytes)
        assert all(check(tiny) for _ in range(3))
    rec.load()
    assert all(check(engine) for _ in range(10) for engine in (rec, tiny))
    sizes.append(lane.memory.arena_bytes)
    fact(arena_mb=[round(size / MB, 1) for size in sizes], graphs=str(tiny.graphs))
    if arena == "growing":
        assert tiny.graphs.invalidations == 0


def test_the_footprint_is_what_is_taken(open_model, open_lane, free_bytes, name, fact):
    engine = open_model(name)
    engine.close()
    lane = open_lane()
    before = free_bytes()
    engine.load()
    loaded = free_bytes()
    largest = tile(engine, engine.ladder[-1], largest_free(engine))
    for _ in range(3):
        lane.run(engine, largest)
    footprint, memory = engine.footprint, lane.memory
    fact(
        engine_mb=round((before - loaded) / MB, 2),
        lane_mb=round((loaded - free_bytes()) / MB, 2),
        footprint=str(footprint),
        memory=str(memory),
    )
    assert footprint.arena_bytes <= memory.arena_bytes <= footprint.arena_bytes + 2 * MB
    assert footprint.io_bytes <= memory.io_bytes <= footprint.io_bytes + 2 * MB


def test_load_and_close_give_everything_back(open_model, open_lane, free_bytes, fact):
    engine, lane = open_model("tiny"), open_lane()
    free = []
    for _ in range(200):
        engine.load()
        for rows in (1, 8):
            for _ in range(2):
                lane.run(engine, tile(engine, rows))
        engine.close()
        free.append(free_bytes())
    fact(free_mb=[round(free[index] / MB, 2) for index in (0, 1, 2, 9, 49, 99, 199)])
    assert abs(free[1] - free[199]) <= 4 * MB


def test_lanes_come_and_go(open_model, free_bytes, fact):
    engine = open_model("tiny")
    free = []
    pinned = LEDGER.taken_bytes
    for _ in range(20):
        with TensorRtLane(2) as lane:
            for _ in range(3):
                lane.run(engine, tile(engine, 32))
        free.append(free_bytes())
    fact(free_mb=[round(value / MB, 2) for value in free])
    assert abs(free[1] - free[-1]) <= 4 * MB
    assert LEDGER.taken_bytes == pinned


@pytest.mark.parametrize("arena", ["growing", "moving", "private"])
def test_all_plans_resident_on_one_lane(open_model, free_bytes, arena, fact):
    engines = [open_model(name) for name in FREE]
    for engine in engines:
        engine.close()
    before = free_bytes()
    with TensorRtLane(2, LaneOptions(arena=arena)) as lane:
        for engine in engines:
            engine.load()
            for _ in range(2):
                lane.run(engine, tile(engine, engine.ladder[1]))
        weights = sum(engine.footprint.weights_bytes for engine in engines)
        largest = max(engine.footprint.arena_bytes for engine in engines)
        fact(
            taken_mb=round((before - free_bytes()) / MB, 1),
            weights_mb=round(weights / MB, 1),
            largest_activation_mb=round(largest / MB, 1),
            all_activations_mb=round(sum(engine.footprint.arena_bytes for engine in engines) / MB, 1),
            memory=str(lane.memory),
        )
