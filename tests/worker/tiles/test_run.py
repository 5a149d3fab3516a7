from threading import Thread

import numpy as np
import pytest

from fixtures.jobs import empty_run
from tensorq_engines import TileFailed

NAMES = ["y"]


def outputs(start, stop):
    return {"y": np.arange(start, stop, dtype=np.float32)[:, None]}


def test_a_job_of_one_part_gets_the_very_arrays():
    given = outputs(0, 3)
    assert empty_run(3).collect(0, 3, given, NAMES)["y"] is given["y"]


def test_parts_are_put_together_in_whatever_order_they_come():
    run = empty_run(6)
    assert run.collect(4, 6, outputs(4, 6), NAMES) is None
    assert run.collect(0, 2, outputs(0, 2), NAMES) is None
    np.testing.assert_array_equal(run.collect(2, 4, outputs(2, 4), NAMES)["y"], outputs(0, 6)["y"])


def test_parts_are_copied_because_their_slot_is_used_again():
    run, given = empty_run(2), outputs(0, 1)
    run.collect(0, 1, given, NAMES)
    given["y"][...] = -1
    np.testing.assert_array_equal(run.collect(1, 2, outputs(1, 2), NAMES)["y"], outputs(0, 2)["y"])


def test_parts_that_two_lanes_bring_at_once_land_in_one_array(monkeypatch):
    # New memory may hold, by chance, what was right in an array that is gone.
    monkeypatch.setattr("tensorq_worker.tiles.run.np.empty", lambda shape, dtype: np.full(shape, -1, dtype))
    run, other = empty_run(2), []

    class Late(dict):
        """The first part: while it is looked at, the other lane brings the second."""

        def __getitem__(self, name):
            if not other:
                other.append(run.collect(1, 2, outputs(1, 2), NAMES))
            return super().__getitem__(name)

    whole = run.collect(0, 1, Late(outputs(0, 1)), NAMES)
    np.testing.assert_array_equal(whole["y"], outputs(0, 2)["y"])


def test_a_part_that_is_brought_twice_counts_once():
    run = empty_run(3)
    assert run.collect(0, 2, outputs(0, 2), NAMES) is None
    assert run.collect(0, 2, outputs(0, 2), NAMES) is None
    assert run.collect(2, 3, outputs(2, 3), NAMES) is not None


def test_outputs_of_the_signature_alone_are_kept():
    whole = empty_run(2).collect(0, 2, {**outputs(0, 2), "extra": np.zeros(2)}, NAMES)
    assert list(whole) == NAMES


def test_knows_how_long_it_has_been_here(monkeypatch):
    clock = [100.0]
    monkeypatch.setattr("tensorq_worker.tiles.run.time.monotonic", lambda: clock[0])
    run = empty_run(1)
    clock[0] += 0.25
    assert run.staged_ms() == pytest.approx(250)


def test_parts_whose_outputs_differ_in_shape_are_refused():
    run = empty_run(3)
    run.collect(0, 2, {"y": np.zeros((2, 3), np.float32)}, NAMES)
    # One place would be spread over all three of the other rows.
    with pytest.raises(TileFailed, match=r"'y' .* \[1, 1\] for rows 2 to 3 .* \[3, 3\]: .* fewer rows"):
        run.collect(2, 3, {"y": np.ones((1, 1), np.float32)}, NAMES)


def test_of_two_lanes_that_bring_the_last_parts_at_once_one_has_the_whole():
    run, lane, got = empty_run(2), [], []

    class Raced(dict):
        """What is done: while it is summed up, the other lane brings the rest."""

        def values(self):
            if not lane:
                lane.append(Thread(target=lambda: got.append(run.collect(1, 2, outputs(1, 2), NAMES))))
                lane[0].start()
                lane[0].join(0.2)
            return super().values()

    run._done = Raced()
    got.append(run.collect(0, 1, outputs(0, 1), NAMES))
    lane[0].join(10)
    (whole,) = [one for one in got if one is not None]
    np.testing.assert_array_equal(whole["y"], outputs(0, 2)["y"])
