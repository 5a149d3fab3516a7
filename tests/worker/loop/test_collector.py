import numpy as np

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
