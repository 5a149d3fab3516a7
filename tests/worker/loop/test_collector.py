import threading

import numpy as np
import pytest

from fixtures.rig import NOW
from models import catalogue


def test_a_collector_that_is_late_does_not_count_storing_as_busy(rig):
    one = rig(affine=(catalogue.affine(), NOW))
    one.broker.stall_s = 0.1
    for _ in range(3 * 32):
        one.submit("affine", {"x": np.ones((1, 2), np.float32)})
    one.drain()
    assert len(one.broker.busy_s) == 3
    assert all(0 < busy_s < 0.1 for busy_s in one.broker.busy_s)


def test_what_tiles_take_becomes_their_cost(rig):
    one = rig(affine=(catalogue.affine(), NOW))
    for _ in range(20 * 32):
        one.submit("affine", {"x": np.ones((1, 2), np.float32)})
    one.drain()
    known = one.models["affine"].costs.table.known
    assert set(known) == {((2,),)}
    assert 0 < known[(2,),][32] <= 1000 * max(one.broker.busy_s)


def test_tiles_that_shared_the_engine_with_another_lanes_do_not_count(rig, monkeypatch):
    two = rig({"lanes": 2, "prefetch_tiles": 4}, affine=(catalogue.affine(), NOW))
    seen, both, engine = [], threading.Barrier(2), two.models["affine"].engine
    monkeypatch.setattr(two.models["affine"].costs.table, "observe", lambda *one: seen.append(one))

    def execute(inputs):
        # Not the reference engine's own, which takes one tile at a time.
        both.wait(5)
        return {"y": inputs["x"]}

    monkeypatch.setattr(engine, "execute", execute)
    for _ in range(2 * 32):
        two.submit("affine", {"x": np.ones((1, 2), np.float32)})
    two.drain()
    assert len(two.broker.busy_s) == 2
    # That of the tile which was submitted first, where it was also the last to end.
    assert len(seen) <= 1
    monkeypatch.undo()
    monkeypatch.setattr(two.models["affine"].costs.table, "observe", lambda *one: seen.append(one))
    before = len(seen)
    two.submit("affine", {"x": np.ones((1, 2), np.float32)})
    two.drain()
    assert seen[before:] == [(((2,),), 1, pytest.approx(1000 * two.broker.busy_s[-1]))]
