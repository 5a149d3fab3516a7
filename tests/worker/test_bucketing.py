"""Rows of any length in, the results of each job as if it had run alone in its bucket."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.jobs import claimed
from tensorq.errors import InputError
from tensorq.signature import Signature, TensorSpec
from tensorq_engines import Buckets, Crop, ShapeRefused, TileFailed
from tensorq_worker.intake import Intake
from tensorq_worker.tiles import Part, Stage, Tile

F32 = "float32"
X = TensorSpec("x", F32, ("n", "h", "w"))
IDS = TensorSpec("ids", "int64", ("n", "w"))
AREA = TensorSpec("area", F32, ("n", "h2", "w2"))
LAST = TensorSpec("last", "int64", ("n", "w"))
NET = Signature((X, IDS), (AREA, LAST))
H = Buckets("x.1", (2, 3), {"x": 9}, (Crop("area", 1),))
W = Buckets("w", (2, 5, 8), {"x": 9, "ids": -7}, (Crop("area", 2, 0.5),))
CANARY = 1234567


def net(inputs):
    """The engine, row by row; every padded place of its row has a part in each output."""
    x, ids = inputs["x"], inputs["ids"]
    return {
        "area": (x.sum(axis=(1, 2), keepdims=True) + x)[:, :, ::2],
        "last": ids + ids.sum(axis=1, keepdims=True),
    }


def bucket(length, lengths):
    return next(size for size in lengths if size >= length)


def alone(x, ids):
    """A job's results without any of the code under test."""
    h, w = x.shape[1:]
    high, wide = bucket(h, H.lengths), bucket(w, W.lengths)
    padding = ((0, 0), (0, high - h), (0, wide - w))
    outputs = net(
        {
            "x": np.pad(x, padding, constant_values=9),
            "ids": np.pad(ids, (padding[0], padding[2]), constant_values=-7),
        }
    )
    return {"area": outputs["area"][:, :h, : -(-w // 2)], "last": outputs["last"]}


def tensors(seed, rows, h, w):
    rng = np.random.default_rng(seed)
    # Whole numbers, whose sums are exact in any order.
    return {
        "x": rng.integers(-99, 99, (rows, h, w)).astype(np.float32),
        "ids": rng.integers(-99, 99, (rows, w)),
    }


@pytest.fixture
def intake():
    return Intake("net", NET, (H, W))


_jobs = st.lists(st.tuples(st.integers(1, 7), st.integers(1, 3), st.integers(1, 8)), min_size=1, max_size=12)


@given(_jobs, st.sets(st.integers(1, 6), min_size=1, max_size=3), st.randoms(use_true_random=False))
def test_each_jobs_results_are_those_of_running_it_alone_padded_to_its_bucket(jobs, sizes, order):
    intake, ladder = Intake("net", NET, (H, W)), tuple(sorted(sizes))
    sent = [tensors(seed, *job) for seed, job in enumerate(jobs)]
    runs = [intake.accept(claimed(one)) for one in sent]
    stages = {}
    for run in runs:
        stages.setdefault(run.row_shapes, Stage(ladder)).add(run)
    assert all(h in H.lengths and w in W.lengths and ids == (w,) for (h, w), ids in stages)
    tiles = []
    for stage in stages.values():
        while stage.rows:
            size = stage.tiling.next_size(stage.rows)
            tiles.append(Tile("net", NET, stage.take(size), size))
    order.shuffle(tiles)
    results = {}
    # One slot's memory serves all tiles, so each finds the bytes of the last.
    memory = {"x": np.full(6 * 3 * 8, CANARY, np.float32), "ids": np.full(6 * 8, CANARY)}
    for tile in tiles:
        slot = {name: memory[name][: np.prod(shape)].reshape(shape) for name, shape in tile.shapes().items()}
        tile.fill(slot)
        assert not any((view == CANARY).any() for view in slot.values())
        for run, outputs in tile.collect(net(slot)):
            results[run] = {name: array.copy() for name, array in outputs.items()}
    for run, one in zip(runs, sent, strict=True):
        for name, array in alone(**one).items():
            np.testing.assert_array_equal(results[run][name], array)


def test_rows_of_neighbouring_lengths_share_a_stage_and_keep_their_own_shape(intake):
    narrow, wide, next_one = (intake.accept(claimed(tensors(0, 1, 3, w))) for w in (3, 5, 6))
    assert narrow.row_shapes == wide.row_shapes == ((3, 5), (5,))
    assert next_one.row_shapes == ((3, 8), (8,))
    assert narrow.tensors["x"].shape == (1, 3, 3)


def test_a_row_longer_than_the_largest_bucket_is_refused_with_the_numbers(intake):
    with pytest.raises(
        ShapeRefused,
        match=r"'net': got shape \[2, 3, 9\] for input 'x', 9 long on axis 2 \(w\), and the largest bucket "
        r"is 8; send shorter rows, or add",
    ):
        intake.accept(claimed(tensors(0, 2, 3, 9)))
    assert intake.accept(claimed(tensors(0, 2, 3, 8))).rows == 2


def test_axes_of_one_name_and_two_lengths_are_refused(intake):
    job = tensors(0, 1, 2, 4) | {"ids": np.zeros((1, 3), np.int64)}
    with pytest.raises(InputError, match=r"axes 'w' differ in length: {'x.2': 4, 'ids.1': 3}"):
        intake.accept(claimed(job))


def test_a_layout_that_was_seen_before_is_padded_the_same(intake):
    first, again = (intake.accept(claimed(tensors(seed, 1, 1, 1))) for seed in range(2))
    assert again.fit is first.fit


def test_a_model_without_a_batch_axis_is_padded_too():
    x, scale = TensorSpec("x", F32, ("w",)), TensorSpec("scale", F32, (2,))
    whole = Signature((x, scale), (TensorSpec("y", F32, ("w",)),), None)
    intake = Intake("net", whole, [Buckets("w", (4, 8), 3, (Crop("y", 0),))])
    run = intake.accept(claimed({"x": np.float32([1, 2, 5, 6, 7]), "scale": np.float32([2, 1])}))
    tile = Tile("net", whole, [Part(run, 0, 1)], 1)
    slot = {name: np.full(shape, CANARY, np.float32) for name, shape in tile.shapes().items()}
    tile.fill(slot)
    np.testing.assert_array_equal(slot["x"], [1, 2, 5, 6, 7, 3, 3, 3])
    np.testing.assert_array_equal(slot["scale"], [2, 1])
    ((_, outputs),) = tile.collect({"y": 2 * slot["x"]})
    np.testing.assert_array_equal(outputs["y"], [2, 4, 10, 12, 14])


def test_rows_of_another_dtype_are_not_squeezed_into_the_slot(intake):
    run = intake.accept(claimed(tensors(0, 1, 1, 1)))
    tile = Tile("net", NET, [Part(run, 0, 1)], 1)
    with pytest.raises(TypeError):
        tile.fill({name: np.zeros(shape, np.int8) for name, shape in tile.shapes().items()})


@pytest.mark.parametrize("shape", [(1, 2, 1), (1, 2)])
def test_a_crop_rule_that_keeps_more_than_there_is_fails_the_job_and_says_so(intake, shape):
    run = intake.accept(claimed(tensors(0, 1, 2, 3)))
    tile = Tile("net", NET, [Part(run, 0, 1)], 1)
    outputs = {"area": np.zeros(shape, np.float32), "last": np.zeros((1, 5), np.int64)}
    with pytest.raises(TileFailed, match=r"'area' came with shape .* keeps 2 places of axis 2; correct"):
        tile.collect(outputs)
    run.dropped = True
    assert tile.collect(outputs) == []
