"""Tiles of real plans, beside the contract that test_contract has."""

import threading
import time

import numpy as np
import pytest

from gpu.tiles import FREE, digest, fill, same, shapes, tile
from tensorq_engines import ShapeRefused, warm


def test_a_plan_describes_itself_and_is_the_same_after_load(plans, name, fact):
    from tensorq_engines.tensorrt.engine import TensorRtEngine

    path = plans / f"{name}.plan"
    if not path.exists():
        pytest.skip(f"there is no {path}")
    engine = TensorRtEngine(name, path)
    before = (engine.signature, engine.ladder, engine.footprint, engine.profiles)
    assert not engine.loaded
    with engine:
        assert before == (engine.signature, engine.ladder, engine.footprint, engine.profiles)
    fact(signature=str(engine.signature), ladder=engine.ladder, footprint=str(engine.footprint))


def test_the_ladder_runs_at_all_free_lengths_as_private_eager_runs_do(
    open_model, open_lane, eager, name, fact
):
    engine, lane = open_model(name), open_lane(graph_trials=0)
    for lengths in FREE[name] or ((),):
        for rows in engine.ladder_for({k: v[1:] for k, v in shapes(engine, 1, lengths).items()}):
            inputs = tile(engine, rows, lengths, seed=rows)
            want = eager.run(engine, inputs)
            for _ in range(4):
                assert same(lane.run(engine, inputs), want), (rows, lengths)
            assert all(np.isfinite(array).all() for array in want.values())
    fact(graphs=str(engine.graphs), memory=str(lane.memory))
    assert engine.graphs.hits > 0
    assert not engine.graphs.failures


@pytest.mark.parametrize("options", [{}, {"graphs": False}, {"wait": "sleep"}, {"serialize": True}], ids=str)
def test_garbage_in_a_free_slot_does_not_reach_the_tile_that_runs_or_its_results(
    open_model, open_lane, eager, options
):
    engine, lane = open_model("rec"), open_lane(**options)
    inputs = tile(engine, 8)
    want = eager.run(engine, inputs)
    for _ in range(10):
        running = fill(lane, engine, inputs)
        lane.submit(running)
        garbage = fill(lane, engine, {k: np.full_like(v, np.nan) for k, v in inputs.items()})
        assert same(running.wait(), want)
        lane.submit(garbage)
        garbage.wait()
        assert same(running.wait(), want)
        garbage.release()
        running.release()


def test_a_result_stays_while_three_later_tiles_run(open_model, open_lane, fact):
    engine, lane = open_model("rec"), open_lane(slots=3)
    held = fill(lane, engine, tile(engine, 8, seed=1))
    lane.submit(held)
    before = digest(held.wait())
    for seed in (2, 3, 4):
        lane.run(engine, tile(engine, 8, seed=seed))
    assert digest(held.wait()) == before
    held.release()


def test_busy_time_of_a_tile_that_queues_behind_another_is_its_own(open_model, lane, fact):
    big, small = open_model("det"), open_model("rec")
    largest, one = tile(big, big.ladder[-1], (960, 960)), tile(small, 1)

    def busy_s(*tiles):
        slots = [fill(lane, engine, inputs) for engine, inputs in tiles]
        for slot in slots:
            lane.submit(slot)
        for slot in slots:
            slot.wait()
        found = [slot.busy_s for slot in slots]
        for slot in slots:
            slot.release()
        return found

    for _ in range(10):
        busy_s((big, largest), (small, one))
    pairs = [busy_s((big, largest), (small, one)) for _ in range(20)]
    alone = sorted(busy_s((small, one))[0] for _ in range(20))[10]
    before, behind = (sorted(pair[n] for pair in pairs)[10] for n in range(2))
    fact(before_ms=1000 * before, behind_ms=1000 * behind, alone_ms=1000 * alone)
    assert before > 4 * alone
    assert behind < 2 * alone


def test_padding_leaves_valid_rows_bit_equal(open_model, lane, name):
    engine = open_model(name)
    rows = engine.ladder[1]
    inputs = tile(engine, rows)
    valid = max(1, rows // 2)
    want = {k: v[:valid].copy() for k, v in lane.run(engine, inputs).items()}
    for value in (np.nan, 0.0, 1e30):
        padded = {k: np.concatenate([v[:valid], np.full_like(v[valid:], value)]) for k, v in inputs.items()}
        for _ in range(2):
            got = {k: v[:valid] for k, v in lane.run(engine, padded).items()}
            assert same(got, want), value


def test_shapes_outside_are_refused_and_take_no_slot(open_model, lane):
    engine = open_model("rec")
    for _ in range(3):
        with pytest.raises(ShapeRefused, match=r"1\.\.32.*64\.\.960.*widen"):
            lane.acquire(engine, shapes(engine, 1, (63,)))
    assert lane.acquire(engine, shapes(engine, 1, (64,))) is not None


def test_two_threads_on_two_lanes_get_the_bits_of_one(open_model, open_lane, eager):
    engine = open_model("rec")
    inputs = [tile(engine, 8, seed=seed) for seed in range(2)]
    wants = [eager.run(engine, one) for one in inputs]
    wrong = []

    def work(lane, index):
        for _ in range(60):
            if not same(lane.run(engine, inputs[index]), wants[index]):
                wrong.append(index)

    threads = [threading.Thread(target=work, args=(open_lane(), index)) for index in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_wait_that_spins_leaves_the_gil_to_other_threads(open_model, open_lane, fact):
    engine, lane = open_model("det"), open_lane(wait="spin")
    inputs = tile(engine, engine.ladder[-1], (960, 960))
    lane.run(engine, inputs)
    stop, steps = threading.Event(), [0]

    def count():
        while not stop.is_set():
            steps[0] += 1

    def rate(action):
        before, started = steps[0], time.perf_counter()
        action()
        return (steps[0] - before) / (time.perf_counter() - started)

    thread = threading.Thread(target=count)
    thread.start()
    try:
        rates = []
        for _ in range(10):
            slot = fill(lane, engine, inputs)
            lane.submit(slot)
            rates.append(rate(slot.wait))
            slot.release()
        alone = rate(lambda: time.sleep(0.05))
    finally:
        stop.set()
        thread.join()
    fact(steps_s_while_waiting=round(sorted(rates)[5]), steps_s_alone=round(alone))
    assert sorted(rates)[5] > alone / 2


def test_warm_captures_the_ladder_for_every_slot(open_model, open_lane, name, fact):
    engine, lane = open_model(name), open_lane(graph_trials=0)
    tiles = warm(lane, engine)
    assert [one.rows for one in tiles] == list(engine.ladder)
    captured = engine.graphs.captures
    slots = [fill(lane, engine, tile(engine, engine.ladder[0])) for _ in range(2)]
    for slot in slots:
        lane.submit(slot)
    for slot in slots:
        slot.wait()
        slot.release()
    fact(captures=captured, seconds=[round(one.seconds, 4) for one in tiles])
    assert captured == 2 * len(engine.ladder)
    assert engine.graphs.hits == 2
