"""When tiles are captured, replayed, and run eagerly after all."""

import threading
from collections import Counter

import numpy as np
import pytest

from tensorq_engines import warm
from tensorq_engines.tensorrt.context import Context
from tensorq_engines.tensorrt.process import CHANGES

HOT = 8
SELDOM = 3


def test_a_hot_size_is_captured_for_every_free_slot_after_its_first_run(open_plan, open_lane, run):
    engine, lane = open_plan(), open_lane()
    for _ in range(4):
        run(lane, engine, HOT)
    graphs = engine.graphs
    assert (graphs.captures, graphs.hits, graphs.misses) == (2, 3, Counter(first=1))


def test_a_slot_that_was_taken_meanwhile_is_captured_after_a_run_of_its_own(open_plan, open_lane, fill):
    engine, lane = open_plan(), open_lane()
    slots = [fill(lane, engine), fill(lane, engine)]
    for slot in slots:
        lane.submit(slot)
        slot.wait()
    assert engine.graphs.misses == Counter(first=1, uncaptured=1)
    assert engine.graphs.captures == 2


def test_other_sizes_are_captured_after_they_came_a_few_times(open_plan, open_lane, run):
    engine, lane = open_plan(), open_lane(graph_after=3)
    for _ in range(5):
        run(lane, engine, SELDOM)
    graphs = engine.graphs
    assert (graphs.captures, graphs.hits, graphs.misses) == (1, 2, Counter(first=1, seldom=2))


def test_warm_captures_the_ladder(open_plan, open_lane):
    engine, lane = open_plan(), open_lane()
    warm(lane, engine)
    assert engine.graphs.captures == 2 * len(engine.ladder)


def test_a_capture_follows_a_run_of_just_its_shapes_whatever_ran_between(open_plan, open_lane, run):
    """TensorRT puts work off to the first run after a change of shapes, and it cannot be captured."""
    engine, lane = open_plan(), open_lane(graph_after=2, graph_limit=12)
    order = [(rows, width) for rows in (1, HOT) for width in (4, 9, 16, 20, 32, 40, 64)] * 20
    np.random.default_rng(3).shuffle(order)
    for rows, width in order:
        run(lane, engine, rows, width)
    graphs = engine.graphs
    assert not graphs.failures
    assert graphs.evictions > 0
    assert graphs.hits > 50


def test_the_stream_is_waited_for_between_the_run_and_the_capture(
    monkeypatch, fake, open_plan, open_lane, run
):
    engine, lane = open_plan(), open_lane()
    calls = []
    for name in ("cudaMemcpyAsync", "cudaStreamSynchronize", "cudaStreamBeginCapture"):
        function = getattr(fake.cuda.runtime, name)

        def keep(*args, name=name, function=function):
            calls.append(name)
            return function(*args)

        monkeypatch.setattr(fake.cuda.runtime, name, keep)
    run(lane, engine, HOT)
    copy = "cudaMemcpyAsync"
    assert calls[:4] == [copy, copy, "cudaStreamSynchronize", "cudaStreamBeginCapture"]


def test_a_context_that_is_not_settled_is_captured_another_time(monkeypatch, open_plan, open_lane, run):
    engine, lane = open_plan(), open_lane()
    with monkeypatch.context() as patch:
        patch.setattr(Context, "settled", property(lambda self: False, lambda self, value: None))
        for _ in range(2):
            run(lane, engine, HOT)
    assert (engine.graphs.captures, dict(engine.graphs.failures)) == (0, {})
    for _ in range(2):
        run(lane, engine, HOT)
    assert engine.graphs.hits == 1


def test_a_change_of_shapes_by_another_form_does_not_make_an_old_graph_wrong(open_plan, open_lane, run):
    engine, lane = open_plan(), open_lane()
    for _ in range(3):
        run(lane, engine, HOT)
    for start in range(3):
        run(lane, engine, SELDOM, start=start)
        run(lane, engine, HOT, start=start)
    assert engine.graphs.hits == 5


@pytest.mark.parametrize(
    ("behaviour", "reason"),
    [
        ("refuse_captured_runs", "refused"),
        ("break_captures", "invalidated"),
        ("empty_captures", "empty"),
    ],
)
def test_a_capture_that_fails_makes_its_shapes_eager_for_good(
    fake, open_plan, open_lane, run, behaviour, reason
):
    engine, lane = open_plan(), open_lane()
    setattr(fake.behaviour, behaviour, 1)
    for _ in range(4):
        run(lane, engine, HOT)
    graphs = engine.graphs
    assert (graphs.captures, graphs.hits) == (0, 0)
    assert graphs.failures == Counter({reason: 1})
    assert graphs.misses == Counter({"first": 1, f"failed: {reason}": 3})
    for _ in range(2):
        run(lane, engine, 32)
    assert engine.graphs.hits == 1, "other shapes are none the worse"


def test_a_graph_that_cannot_be_made_ready_is_a_failed_capture_too(fake, open_plan, open_lane, run):
    engine, lane = open_plan(), open_lane()
    fake.cuda.fail("cudaGraphInstantiate", 1)
    for _ in range(3):
        run(lane, engine, HOT)
    assert engine.graphs.failures == Counter(instantiate=1)


def test_failed_captures_leave_no_graph_behind(fake, open_plan, open_lane, run):
    engine, lane = open_plan(), open_lane()
    for behaviour in ("refuse_captured_runs", "empty_captures"):
        setattr(fake.behaviour, behaviour, 1)
        run(lane, engine, HOT if behaviour == "empty_captures" else 1)
    assert fake.cuda.graphs == {}
    assert fake.cuda.execs == {}


def test_while_another_thread_changes_engines_a_capture_is_put_off(open_plan, open_lane, run):
    engine, lane = open_plan(), open_lane()
    run(lane, engine, SELDOM)
    held, leave = threading.Event(), threading.Event()

    def change():
        with CHANGES:
            held.set()
            leave.wait()

    run(lane, engine, SELDOM)
    thread = threading.Thread(target=change)
    thread.start()
    held.wait()
    try:
        run(lane, engine, SELDOM)
        assert (engine.graphs.captures, engine.graphs.delays) == (0, 1)
    finally:
        leave.set()
        thread.join()
    run(lane, engine, SELDOM)
    run(lane, engine, SELDOM)
    assert (engine.graphs.captures, engine.graphs.hits) == (1, 1)
    assert engine.graphs.misses["uncaptured"] == 1


def test_no_more_graphs_than_the_limit_the_least_used_goes_and_must_be_seen_again(
    fake, open_plan, open_lane, run
):
    engine, lane = open_plan(), open_lane(graph_limit=2, graph_after=2)
    for width in (20, 24, 28):
        for _ in range(3):
            run(lane, engine, SELDOM, width)
            assert len(fake.cuda.execs) <= 2
    graphs = engine.graphs
    assert (graphs.captures, graphs.evictions, graphs.hits) == (3, 1, 3)
    run(lane, engine, SELDOM, 28)
    run(lane, engine, SELDOM, 20)
    assert engine.graphs.hits == 4
    assert engine.graphs.captures == 3


@pytest.mark.parametrize(("sizes", "captured"), [("ladder", 6), ("none", 0), ((8,), 2)])
def test_the_models_settings_choose_the_sizes(open_plan, open_lane, sizes, captured):
    engine, lane = open_plan(graph_sizes=sizes), open_lane()
    warm(lane, engine)
    warm(lane, engine)
    assert engine.graphs.captures == captured
    assert engine.graphs.misses["off"] == 2 * (3 - captured // 2)


def test_a_lane_without_graphs_captures_nothing(open_plan, open_lane, run):
    engine, lane = open_plan(), open_lane(graphs=False)
    for _ in range(3):
        run(lane, engine, HOT)
    assert engine.graphs.misses == Counter(off=3)


def test_a_graph_that_replays_slower_is_dropped_for_good(monkeypatch, fake, open_plan, open_lane, run):
    tried = []
    monkeypatch.setattr(
        "tensorq_engines.tensorrt.seat.replay_is_slower",
        lambda replay, eager, wait, rounds: tried.append(rounds) or len(tried) == 1,
    )
    engine, lane = open_plan(), open_lane(graph_trials=5)
    for _ in range(3):
        run(lane, engine, HOT)
        run(lane, engine, 32)
    assert tried == [5, 5], "once for each form"
    assert engine.graphs.misses == Counter(first=2, slower=2)
    assert engine.graphs.hits == 2
    assert len(fake.cuda.execs) == 2, "the two slots of the other size"


def test_a_trial_runs_the_tile_both_ways_and_leaves_its_result(fake, open_plan, open_lane, run):
    engine, lane = open_plan(), open_lane(graph_trials=3)
    before = fake.cuda.calls["cudaGraphLaunch"]
    run(lane, engine, HOT)
    assert fake.cuda.calls["cudaGraphLaunch"] - before in (1, 4)
    assert engine.graphs.hits == 0


def test_counters_outlive_close_and_lanes(open_plan, open_lane, run):
    engine, lane = open_plan(), open_lane()
    for _ in range(3):
        run(lane, engine, HOT)
    engine.close()
    engine.load()
    other = open_lane()
    for each in (lane, other):
        run(each, engine, HOT)
    assert engine.graphs.hits == 2
    assert engine.graphs.misses == Counter(first=3)
