"""Residency over TensorRT's engine and lanes on a fake GPU."""

from contextlib import ExitStack

import numpy as np
import pytest

from fakes.install import install
from fakes.tensorrt import make_plan
from models import catalogue
from tensorq_engines import EngineMemory, ModelLoadFailed, Residency, Residents, create_gauge
from tensorq_engines.base.profile import Profile
from tensorq_engines.tensorrt.description import Description
from tensorq_engines.tensorrt.engine import TensorRtEngine
from tensorq_engines.tensorrt.lane import TensorRtLane
from tensorq_engines.tensorrt.options import LaneOptions

MIB = 2**20
SMALL, LARGE = Profile.of(x=([1, 4], [8, 16], [32, 64])), Profile.of(x=([33, 4], [64, 16], [128, 64]))


@pytest.fixture
def fake(monkeypatch):
    return install(monkeypatch)


@pytest.fixture
def make_engine(fake, tmp_path):
    def make(name, weights_mib, arena_mib, profiles=(SMALL,)):
        path = tmp_path / f"{name}.plan"
        sizes = {"weights_bytes": weights_mib * MIB, "activation_bytes": arena_mib * MIB}
        path.write_bytes(make_plan(catalogue.affine(), profiles, **sizes))
        return TensorRtEngine(name, path)

    return make


@pytest.fixture
def open_pool(fake):
    """A residency of a budget in MiB and its lane; closed at the end."""
    with ExitStack() as stack:

        def make(engines, budget_mib=None, arena="auto"):
            budget = None if budget_mib is None else budget_mib * MIB
            residents = Residents(budget, 1, shared=arena != "private")
            residency = Residency(residents, create_gauge("tensorrt"))
            stack.callback(residency.close)
            lane = stack.enter_context(TensorRtLane(2, LaneOptions(arena=arena, graph_trials=0)))
            residency.attach(lane)
            for engine in engines:
                residency.add(engine)
            return residency, residents, lane

        yield make


def run(residency, lane, name, rows=8):
    residency.ensure(name)
    engine = residency.use(name)
    x = np.ones((rows, 16), np.float32)
    np.testing.assert_array_equal(lane.run(engine, {"x": x})["y"], x * 2 + 1)
    residency.done(name)


def test_weights_are_what_the_driver_showed_or_else_what_was_predicted(make_engine):
    shown, hidden = make_engine("shown", 6, 2), make_engine("hidden", 0, 2)
    with shown, hidden:
        assert shown.memory.weights_bytes == 6 * MIB != shown.footprint.weights_bytes
        assert hidden.memory.weights_bytes == hidden.footprint.weights_bytes > 0
    assert shown.memory == hidden.memory == EngineMemory()


def test_contexts_count_where_they_are_made_and_with_their_own_sizes(make_engine, open_pool):
    engine = make_engine("two", 4, 2, (SMALL, LARGE))
    residency, _, lane = open_pool([engine])
    residency.ensure("two")
    known = engine._description
    engine._description = Description(
        known.signature, known.profiles, known.ladder, known.footprint, (3 * MIB, 5 * MIB)
    )
    seen = [engine.memory.context_bytes]
    for rows in (64, 8, 8):
        run(residency, lane, "two", rows)
        seen.append(engine.memory.context_bytes)
    assert seen == [0, 5 * MIB, 8 * MIB, 8 * MIB]


def test_the_accounts_agree_through_loads_tiles_and_evictions(fake, make_engine, open_pool):
    engines = [make_engine(name, 10, arena) for name, arena in (("a", 4), ("b", 8), ("c", 12))]
    residency, residents, lane = open_pool(engines, 40)
    for name in "abcacbbac":
        run(residency, lane, name)
        seen = residency.check_integrity()
        assert (seen.drift_bytes, seen.unaccounted_bytes) == (0, 0)
        assert seen.taken_bytes == fake.cuda.used_bytes <= 40 * MIB
        assert residents.charged.total_bytes <= 40 * MIB
    assert sum(model.evictions for model in residents) > 2
    assert all(model.footprint.weights_bytes == 10 * MIB for model in residents)


def test_the_arena_shrinks_when_its_largest_user_is_evicted(make_engine, open_pool):
    engines = [make_engine("small", 10, 4), make_engine("large", 10, 40), make_engine("new", 20, 8)]
    residency, residents, lane = open_pool(engines, 64)
    run(residency, lane, "small")
    run(residency, lane, "large")
    assert lane.memory.arena_bytes == 40 * MIB
    residency.use("small")
    run(residency, lane, "new")
    residency.done("small")
    assert residents["large"].evictions == 1
    assert lane.memory.arena_bytes == 8 * MIB


def test_private_activations_are_the_engines(fake, make_engine, open_pool):
    engines = [make_engine("a", 10, 8), make_engine("b", 10, 12)]
    residency, residents, lane = open_pool(engines, 100, "private")
    for engine in engines:
        run(residency, lane, engine.name)
    assert [engine.memory.arena_bytes for engine in engines] == [8 * MIB, 12 * MIB]
    assert residents.charged.arenas_bytes == 20 * MIB
    assert lane.memory.arena_bytes == 0
    seen = residency.check_integrity()
    assert seen.drift_bytes == 0
    assert seen.taken_bytes == fake.cuda.used_bytes


def test_a_plan_that_the_device_has_no_room_for_fails_in_tensorrts_words(fake, make_engine, open_pool):
    residency, residents, _ = open_pool([make_engine("a", 100, 2)])
    others = fake.cuda.runtime.cudaMalloc(1000 * MIB)[1]
    with pytest.raises(ModelLoadFailed, match="out of memory for the weights"):
        residency.ensure("a")
    assert residency.check_integrity().drift_bytes == 0
    assert residents.charged.total_bytes == 0
    fake.cuda.runtime.cudaFree(others)
