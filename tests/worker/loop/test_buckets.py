"""Rows of free lengths through the whole loop, on ONNX Runtime."""

import numpy as np
import pytest

from models import catalogue
from tensorq_engines import ShapeRefused, TileFailed

BUCKETS = """
engine = "onnxruntime"
[batching]
max_delay_ms = 0
[buckets.W]
lengths = [160, 320]
crop = { y = { axis = 2, scale = 0.5 } }
"""
WEIGHT = np.random.default_rng(5).standard_normal((4, 3, 3), np.float32)


def convolve(x):
    """What `catalogue.convolution` computes, of rows as they are."""
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, 3, axis=2)[:, :, ::2]
    return np.einsum("nctk,ock->not", windows, WEIGHT)


def image(seed, width, rows=1):
    return {"x": np.random.default_rng(seed).standard_normal((rows, 3, width), np.float32)}


def test_rows_of_many_lengths_share_tiles_and_get_the_results_of_the_unpadded_rows(rig):
    net = rig(net=(catalogue.convolution(), BUCKETS))
    net.hold("net")
    blocker = net.submit("net", image(0, 1))
    net.step()
    jobs = []
    for seed, (width, rows) in enumerate([(150, 1), (155, 2), (160, 1), (1, 3), (161, 40), (320, 1)]):
        x = image(seed, width, rows)
        jobs.append((net.submit("net", x), x["x"]))
    net.step()
    net.let_go()
    net.drain()
    assert len(net.outputs(blocker)["y"]) == 1
    assert [job.job_id for job, _ in jobs[:4]] in net.broker.launches
    for job, x in jobs:
        np.testing.assert_allclose(net.outputs(job)["y"], convolve(x), rtol=1e-4, atol=1e-5)


def test_an_output_without_a_rule_is_left_as_it_is(rig):
    net = rig(net=(catalogue.convolution(), BUCKETS.replace("crop", "# ")))
    job = net.submit("net", image(0, 151))
    net.drain()
    assert net.outputs(job)["y"].shape == (1, 4, 80)


def test_a_row_longer_than_all_buckets_fails_alone(rig):
    net = rig(net=(catalogue.convolution(), BUCKETS))
    before, bad, after = (net.submit("net", image(0, width)) for width in (150, 321, 320))
    net.drain()
    assert list(net.slow.failed) == [bad.job_id]
    assert isinstance(net.slow.failed[bad.job_id], ShapeRefused)
    assert set(net.broker.results) == {before.job_id, after.job_id}


def test_a_crop_rule_that_is_wrong_for_one_length_fails_jobs_of_that_length_alone(rig):
    # Half of 160, and one: more places than the output has.
    wrong = BUCKETS.replace("scale = 0.5", "scale = 0.5, offset = 1")
    net = rig(net=(catalogue.convolution(), wrong))
    good, bad, fine = (net.submit("net", image(0, width)) for width in (150, 160, 152))
    net.drain()
    assert list(net.slow.failed) == [bad.job_id]
    assert isinstance(net.slow.failed[bad.job_id], TileFailed)
    assert set(net.broker.results) == {good.job_id, fine.job_id}


@pytest.mark.parametrize("crop", ["axis = 2, scale = 0.5", "axis = 2, scale = 0.5, round = 'floor'"])
def test_the_way_a_fraction_is_rounded_is_the_rules(rig, crop):
    net = rig(net=(catalogue.convolution(), BUCKETS.replace("axis = 2, scale = 0.5", crop)))
    job = net.submit("net", image(0, 151))
    net.drain()
    assert net.outputs(job)["y"].shape[2] == (75 if "floor" in crop else 76)
