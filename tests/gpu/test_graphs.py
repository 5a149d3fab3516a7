"""Graph replay: bit-equal to eager runs, whatever else ran between."""

import threading

import numpy as np

from gpu.tiles import FREE, cases, same, tile
from tensorq_engines.tensorrt.cuda import memory
from tensorq_engines.tensorrt.cuda.device import Device

ROUNDS = 20


def test_graphs_of_several_shapes_interleaved_with_eager_runs_of_others_are_bit_equal(
    open_model, open_lane, eager, fact
):
    """One context of rec: some widths are captured, others never are, in a shuffled order."""
    engine = open_model("rec")
    lane = open_lane(graph_after=2, graph_limit=12, graph_trials=0)
    widths = [64, 128, 200, 320, 480, 640, 960]
    wants = {}
    for width in widths:
        for rows in (1, 8):
            inputs = tile(engine, rows, (width,), seed=width + rows)
            wants[width, rows] = (inputs, eager.run(engine, inputs))
    order = list(wants) * ROUNDS
    np.random.default_rng(3).shuffle(order)
    for width, rows in order:
        inputs, want = wants[width, rows]
        assert same(lane.run(engine, inputs), want), (width, rows)
    fact(graphs=str(engine.graphs))
    assert engine.graphs.hits > 50
    assert engine.graphs.evictions > 0
    assert not engine.graphs.failures


def test_models_take_turns_on_one_lane_and_one_arena(open_model, open_lane, eager, fact):
    lane = open_lane()
    work = []
    for name in FREE:
        engine = open_model(name)
        for rows, lengths in cases(engine, FREE[name][:2])[:4]:
            inputs = tile(engine, rows, lengths, seed=rows)
            work.append((engine, inputs, eager.run(engine, inputs)))
    order = list(range(len(work))) * ROUNDS
    np.random.default_rng(5).shuffle(order)
    for index in order:
        engine, inputs, want = work[index]
        assert same(lane.run(engine, inputs), want), (engine.name, index)
    fact(memory=str(lane.memory), graphs={engine.name: str(engine.graphs) for engine, _, _ in work})


def test_capture_while_another_thread_allocates(open_model, open_lane, fact):
    engine, lane = open_model("tiny"), open_lane(graph_limit=2, graph_trials=0)
    stop, allocations = threading.Event(), [0]

    def allocate():
        Device.require().use()
        while not stop.is_set():
            memory.free(memory.allocate(1 << 20))
            allocations[0] += 1

    thread = threading.Thread(target=allocate)
    thread.start()
    try:
        wants = {rows: lane.run(engine, tile(engine, rows)) for rows in engine.ladder}
        for _ in range(15):
            for rows in engine.ladder:
                assert same(lane.run(engine, tile(engine, rows)), wants[rows])
    finally:
        stop.set()
        thread.join()
    fact(allocations=allocations[0], graphs=str(engine.graphs))
    assert engine.graphs.captures >= 30
    assert not engine.graphs.failures


def test_two_lanes_replay_and_capture_at_once(open_model, open_lane, eager):
    engine = open_model("rec")
    inputs = {rows: tile(engine, rows, seed=rows) for rows in engine.ladder}
    wants = {rows: eager.run(engine, one) for rows, one in inputs.items()}
    wrong = []

    def work(lane):
        for _ in range(20):
            for rows in engine.ladder:
                if not same(lane.run(engine, inputs[rows]), wants[rows]):
                    wrong.append(rows)

    threads = [threading.Thread(target=work, args=(open_lane(graph_limit=2),)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_graph_settings_are_kept_to(open_model, open_lane):
    engine = open_model("tiny", graph_sizes=(8,))
    lane = open_lane(graph_trials=0)
    for rows in (1, 1, 8, 8, 32, 32):
        lane.run(engine, tile(engine, rows))
    assert engine.graphs.hits == 1
    assert engine.graphs.misses["off"] == 4
    none = open_model("tiny", graph_sizes="none")
    for _ in range(5):
        lane.run(none, tile(none, 8))
    assert none.graphs.captures == 0


def test_a_graph_is_kept_where_replaying_is_not_slower(open_model, open_lane, eager, name, fact):
    engine, lane = open_model(name), open_lane()
    for rows in engine.ladder:
        inputs = tile(engine, rows, seed=rows)
        want = eager.run(engine, inputs)
        for _ in range(3):
            assert same(lane.run(engine, inputs), want), rows
    forms = lane._seats[engine]._forms.values()
    fact(eager={next(iter(form.shapes.values()))[0]: form.eager for form in forms if form.runs})
    assert all(form.tried for form in forms if form.runs)
    assert {form.eager for form in forms if form.runs} <= {None, "slower"}
    assert not engine.graphs.failures
