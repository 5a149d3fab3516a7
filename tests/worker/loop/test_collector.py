import threading

import numpy as np

from fixtures.rig import NOW
from models import catalogue
from tensorq_engines.costs.table import OBSERVATIONS


def test_a_collector_that_is_late_does_not_count_storing_as_busy(rig):
    one = rig(affine=(catalogue.affine(), NOW))
    one.broker.stall_s = 0.1
    for _ in range(3 * 32):
        one.submit("affine", {"x": np.ones((1, 2), np.float32)})
    one.drain()
    assert len(one.broker.busy_s) == 3
    assert all(0 < busy_s < 0.1 for busy_s in one.broker.busy_s)


def run_two_tiles(rig):
    """One tile, and one behind it."""
    rig.hold("affine")
    for _ in range(2 * 32):
        rig.submit("affine", {"x": np.ones((1, 2), np.float32)})
    rig.step()
    assert rig.lanes.pending == 2
    rig.let_go()
    rig.drain()


def test_what_tiles_take_becomes_their_cost(rig):
    one = rig(affine=(catalogue.affine(), NOW))
    for _ in range(OBSERVATIONS - 1):
        run_two_tiles(one)
    # Of two tiles only the second ran on an engine that did not idle before.
    assert one.models["affine"].costs.table.known == {}
    run_two_tiles(one)
    known = one.models["affine"].costs.table.known
    assert set(known) == {((2,),)}
    assert 0 < known[(2,),][32] <= 1000 * max(one.broker.busy_s)


def test_tiles_that_shared_the_engine_with_another_lanes_do_not_count(rig, monkeypatch):
    two = rig({"lanes": 2, "prefetch_tiles": 4}, affine=(catalogue.affine(), NOW))
    seen, go, both, served = [], threading.Event(), threading.Barrier(2), two.models["affine"]
    monkeypatch.setattr(served.costs.table, "observe", lambda *one: seen.append(one))

    def execute(inputs):
        # Not the reference engine's own, which takes one tile at a time.
        go.wait(5)
        both.wait(5)
        return {"y": inputs["x"]}

    monkeypatch.setattr(served.engine, "execute", execute)
    for _ in range(4 * 32):
        two.submit("affine", {"x": np.ones((1, 2), np.float32)})
    two.step()
    assert two.lanes.pending == 4
    go.set()
    two.drain()
    assert len(two.broker.busy_s) == 4
    assert seen == []
