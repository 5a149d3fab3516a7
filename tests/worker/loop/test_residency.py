"""The loop with more models than there is room for."""

import threading
import time

import numpy as np
import pytest

from fixtures.rig import NOW
from models import catalogue
from tensorq_engines import ModelDoesNotFit, ModelLoadFailed, ResidentState, TileFailed
from tensorq_worker.loop.rehearsal import Rehearsal

X = np.ones((1, 2), np.float32)
NAMES = ("a", "b", "c", "d")
PROFILE = "[[profile]]\nx = { min = [1, 2], opt = [4, 2], max = [8, 2] }\n"


def need(rig, *names):
    pool = rig.pools[names[0]]
    return pool._residents.predict(names).total_bytes


@pytest.fixture
def crowd(rig, tmp_path):
    """Four models alike, with room for two."""

    def make(settings=NOW, room=2, **models):
        models = models or dict.fromkeys(NAMES, (catalogue.affine(), settings + PROFILE))
        one = rig({"budget_bytes": 2**30}, **models)
        pools = {id(one.pools[name]): one.pools[name] for name in models if one.models[name].engine}
        for pool in pools.values():
            pool._residents.budget_bytes = need(one, *list(models)[:room])
        return one

    return make


def loads(rig):
    return {name: rig.pools[name][name].loads for name in rig.models}


def test_models_take_turns_and_every_job_is_answered(crowd):
    four = crowd()
    jobs = [four.submit(name, {"x": X * n}) for n in range(20) for name in NAMES]
    four.drain()
    for n, job in enumerate(jobs):
        np.testing.assert_array_equal(four.outputs(job)["y"], X * (n // 4) * 2 + 1)
    assert four.slow.failed == {}
    resident = [name for name in NAMES if four.pools[name][name].state is ResidentState.RESIDENT]
    assert len(resident) == 2
    assert min(loads(four).values()) == 1


def test_a_model_keeps_its_place_while_it_has_work_and_its_stay_lasts(crowd):
    four = crowd()
    four.pools["a"]._residents.dwell = type(four.pools["a"]._residents.dwell)(4.0, 30.0, 60.0)
    for name in ("a", "b"):
        four.submit(name, {"x": X})
    four.drain()
    four.hold("a")
    for _ in range(64):
        for name in ("a", "b", "c"):
            four.submit(name, {"x": X})
    for _ in range(5):
        four.step()
    assert loads(four) == {"a": 1, "b": 1, "c": 0, "d": 0}
    four.let_go()
    four.drain()
    assert loads(four) == {"a": 1, "b": 1, "c": 1, "d": 0}


def test_no_model_leaves_while_a_tile_of_it_runs(crowd):
    four = crowd(room=1)
    four.hold("a")
    first = four.submit("a", {"x": X})
    while not four.broker.launches:
        four.step()
    other = four.submit("b", {"x": X})
    for _ in range(20):
        four.step()
    assert four.pools["a"][("a")].state is ResidentState.RESIDENT
    assert loads(four)["b"] == 0
    four.let_go()
    four.drain()
    assert set(four.broker.results) == {first.job_id, other.job_id}
    assert four.pools["a"]["a"].evictions == 1


def test_a_model_that_can_never_fit_fails_its_jobs_with_the_numbers_and_no_others(crowd):
    two = crowd(room=1, small=(catalogue.affine(), NOW + PROFILE), large=(catalogue.mlp(), NOW))
    small, large = two.submit("small", {"x": X}), two.submit("large", {"x": np.ones((1, 128), np.float32)})
    two.drain()
    assert list(two.broker.results) == [small.job_id]
    error = two.slow.failed[large.job_id]
    assert isinstance(error, ModelDoesNotFit)
    assert "budget" in str(error)
    assert two.models["large"].info().reason == str(error)


def test_a_load_that_fails_fails_the_jobs_that_wait_and_those_that_come_while_it_cools_down(crowd):
    four = crowd()
    source = four.models["a"].engine.source
    good = source.read_bytes()
    source.write_bytes(b"no model")
    first, other = four.submit("a", {"x": X}), four.submit("b", {"x": X})
    four.drain()
    second = four.submit("a", {"x": X})
    four.drain()
    assert list(four.broker.results) == [other.job_id]
    for job in (first, second):
        assert isinstance(four.slow.failed[job.job_id], ModelLoadFailed)
        assert "tried again in" in str(four.slow.failed[job.job_id])
    source.write_bytes(good)
    four.pools["a"]["a"].retry_at_s = 0.0
    third = four.submit("a", {"x": X})
    four.drain()
    assert third.job_id in four.broker.results


def test_halves_of_a_failed_tile_have_their_model_loaded_again(crowd):
    two = crowd(room=1, gather=(catalogue.gather(), NOW), other=(catalogue.affine(), NOW + PROFILE))
    engine = two.models["gather"].engine
    execute, entered, go = engine.execute, threading.Event(), threading.Event()

    def fail_once(inputs):
        if len(inputs["index"]) > 1 and not entered.is_set():
            entered.set()
            go.wait(20)
            raise ValueError("bad tile")
        return execute(inputs)

    engine.execute = fail_once
    jobs = [two.submit("gather", {"index": np.int64([n])}) for n in range(4)]
    while not entered.is_set():
        two.step()
    # No step from here on: it would launch the halves while the model is still there.
    go.set()
    while two.lanes.pending:
        time.sleep(0.001)
    two.pools["other"].ensure("other")
    assert two.pools["gather"]["gather"].state is ResidentState.ABSENT
    two.drain()
    assert set(two.broker.results) == {job.job_id for job in jobs}
    assert loads(two)["gather"] == 2


class TestRehearsal:
    def test_runs_the_ladder_on_every_lane_and_counts_nothing(self, rig):
        two = rig({"lanes": 2}, a=(catalogue.affine(), NOW + PROFILE))
        assert Rehearsal(two.broker, two.lanes, two.pools, two.stop).run(two.models["a"]) == 2 * 3
        assert [len(ids) for name, ids in two.broker.calls if name == "finish"] == [1] * 6
        assert sum(two.broker.paddings) == 0
        assert two.broker.busy_s == [0.0] * 6
        assert len(two.leases) == 0

    def test_a_tile_that_fails_fails_no_job(self, rig, caplog):
        one = rig(a=(catalogue.affine(), NOW + PROFILE))

        def fail(inputs):
            raise ValueError("zeros")

        one.models["a"].engine.execute = fail
        Rehearsal(one.broker, one.lanes, one.pools, one.stop).run(one.models["a"])
        assert "a tile of zeros failed" in caplog.text
        assert not one.loop.busy
        assert one.slow.failed == {}


def test_a_tile_error_is_still_told(crowd):
    four = crowd()
    engine = four.models["a"].engine

    def fail(inputs):
        raise ValueError("never")

    engine.execute = fail
    job = four.submit("a", {"x": X})
    four.drain()
    assert isinstance(four.slow.failed[job.job_id], TileFailed)
