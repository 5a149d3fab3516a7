import itertools
import time
from typing import ClassVar

import numpy as np
import pytest

from fakes.install import install
from fakes.tensorrt import make_plan
from models import catalogue
from tensorq.signature import Signature, TensorSpec
from tensorq_engines import Footprint, HostEngine, SlotMisuse, ThreadedLane, TileFailed, measure_costs
from tensorq_engines.base.profile import Profile
from tensorq_engines.tensorrt.engine import TensorRtEngine
from tensorq_engines.tensorrt.lane import TensorRtLane
from tensorq_engines.tensorrt.options import LaneOptions

ROW = {"x": (4,), "index": ()}


class TimedEngine(HostEngine):
    """A tile takes as many ms as `took_ms` says by its rows; what ran is in `ran`."""

    kind: ClassVar[str] = "timed"
    signature = Signature(
        (TensorSpec("x", "float32", ("N", 4)), TensorSpec("index", "int64", ("N",))),
        (TensorSpec("y", "float32", ("N", 4)),),
        0,
    )
    profiles = ()
    ladder = (1, 2, 8)
    footprint = Footprint()
    identity = "timed"
    loaded = True
    failing = 0

    def __init__(self):
        super().__init__("timed")
        self.ran = []
        self.took_ms = {1: 3.0, 2: 1.0, 8: 2.0}

    def load(self): ...

    def close(self): ...

    def execute(self, inputs):
        rows = len(inputs["x"])
        self.ran.append(rows)
        assert not inputs["index"].any()
        assert np.isfinite(inputs["x"]).all()
        if len(self.ran) == self.failing:
            raise MemoryError("no more")
        time.sleep(self.took_ms[rows] / 1000)
        return {"y": inputs["x"]}


class TimedLane(ThreadedLane):
    kind: ClassVar[str] = "timed"


def test_gives_each_sizes_own_time_while_tiles_queue():
    engine = TimedEngine()
    with TimedLane() as lane:
        found = measure_costs(lane, engine, ROW, busy_s=0, rounds=5)
    assert list(found) == [1, 2, 8]
    for size, took_ms in engine.took_ms.items():
        assert took_ms <= found[size] < 2 * took_ms + 1


def test_keeps_the_engine_busy_first_and_lets_sizes_take_turns():
    engine, ticks = TimedEngine(), itertools.count()
    engine.took_ms = dict.fromkeys(engine.ladder, 0.0)
    with TimedLane() as lane:
        measure_costs(lane, engine, ROW, busy_s=50, rounds=7, clock=lambda: next(ticks))
    # The clock is looked at before the first round and after each from the fifth on.
    assert engine.ran == [1, 2, 8] * (4 + 50 + 7)


def test_a_tile_that_fails_leaves_the_lane_free():
    engine = TimedEngine()
    engine.failing = 4
    with TimedLane() as lane:
        with pytest.raises(TileFailed, match="no more"):
            measure_costs(lane, engine, ROW, busy_s=0)
        held = [lane.acquire(engine, {"x": (1, 4), "index": (1,)}) for _ in range(lane.slot_count)]
        assert None not in held
        with pytest.raises(SlotMisuse, match="no slot"):
            measure_costs(lane, engine, ROW, busy_s=0)


def test_on_a_gpu_goes_by_the_devices_clock(monkeypatch, tmp_path):
    fake = install(monkeypatch)
    path = tmp_path / "m.plan"
    path.write_bytes(make_plan(catalogue.affine(), (Profile.of(x=([1, 4], [8, 16], [32, 64])),)))
    with TensorRtEngine("m", path) as engine, TensorRtLane(2, LaneOptions(graph_trials=0)) as lane:
        fake.cuda.clock = lambda: fake.cuda.steps
        found = measure_costs(lane, engine, {"x": (16,)}, busy_s=0, rounds=3)
        # Copy in, run, copy out, and the mark behind them: four steps, here of a second each.
        assert found == {1: 4000, 8: 4000, 32: 4000}
