"""Rows in, results out: nothing of one job, of the padding or of an earlier tile is in another's."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.jobs import claimed, run_of
from tensorq.signature import Signature, TensorSpec
from tensorq_worker.tiles import Part, Run, Stage, Tile

F32 = "float32"
SIGNATURE = Signature((TensorSpec("x", F32, ("n", "w")),), (TensorSpec("y", F32, ("n", "w")),))
WHOLE = Signature((TensorSpec("x", F32, (3,)),), (TensorSpec("y", F32, (3,)),), batch_axis=None)
STALE = np.float32(np.nan)


def affine(inputs):
    """The engine: y = 2x + 1, row by row."""
    return {"y": inputs["x"] * np.float32(2) + np.float32(1)}


def tile_of(runs, size, signature=SIGNATURE):
    return Tile("net", signature, [Part(run, 0, run.rows) for run in runs], size)


def filled(tile):
    slot = {name: np.full(shape, STALE) for name, shape in tile.shapes().items()}
    tile.fill(slot)
    return slot


def rows(count, start=0):
    return np.arange(start, start + 2 * count, dtype=np.float32).reshape(count, 2)


def test_padding_repeats_the_last_row_and_never_shows_stale_bytes():
    tile = tile_of([run_of(rows(1)), run_of(rows(2, 10))], 8)
    x = filled(tile)["x"]
    np.testing.assert_array_equal(x[:3], np.concatenate([rows(1), rows(2, 10)]))
    np.testing.assert_array_equal(x[3:], np.repeat(rows(2, 10)[-1:], 5, axis=0))
    assert (tile.rows, tile.padding) == (3, 5)


def test_a_full_tile_has_no_padding():
    tile = tile_of([run_of(rows(4))], 4)
    np.testing.assert_array_equal(filled(tile)["x"], rows(4))
    assert tile.padding == 0


def test_each_job_gets_its_own_rows_and_no_padding():
    runs = [run_of(rows(1)), run_of(rows(2, 10))]
    tile = tile_of(runs, 8)
    complete = tile.collect(affine(filled(tile)))
    assert [run for run, _ in complete] == runs
    for run, outputs in complete:
        np.testing.assert_array_equal(outputs["y"], affine(run.tensors)["y"])


def test_a_dropped_job_gets_nothing_and_does_not_shift_the_others():
    runs = [run_of(rows(1)), run_of(rows(2, 10)), run_of(rows(1, 20))]
    tile = tile_of(runs, 8)
    outputs = affine(filled(tile))
    runs[1].dropped = True
    complete = dict(tile.collect(outputs))
    assert list(complete) == [runs[0], runs[2]]
    np.testing.assert_array_equal(complete[runs[2]]["y"], affine(runs[2].tensors)["y"])


def test_a_model_without_a_batch_axis_runs_a_job_as_it_is():
    array = np.float32([1, 2, 3])
    run = Run(claimed(), {"x": array}, 1, ((3,),))
    tile = tile_of([run], 1, WHOLE)
    assert tile.shapes() == {"x": (3,)}
    assert tile.padding == 0
    ((owner, outputs),) = tile.collect(affine(filled(tile)))
    assert owner is run
    np.testing.assert_array_equal(outputs["y"], affine({"x": array})["y"])
    run.dropped = True
    assert tile.collect(affine(filled(tile))) == []


def test_rows_of_another_dtype_are_not_squeezed_into_the_slot():
    tile = tile_of([run_of(np.full((1, 2), 0.5))], 1, SIGNATURE)
    with pytest.raises(TypeError):
        tile.fill({"x": np.zeros((1, 2), np.int64)})


@given(
    st.lists(st.integers(1, 40), min_size=1, max_size=12),
    st.sets(st.integers(1, 24), min_size=1, max_size=4).map(lambda sizes: tuple(sorted(sizes))),
    st.integers(0, 2**32 - 1),
    st.randoms(use_true_random=False),
)
def test_results_are_bit_for_bit_those_of_each_row_alone(counts, ladder, seed, order):
    rng = np.random.default_rng(seed)
    runs = [run_of(rng.standard_normal((count, 2), np.float32)) for count in counts]
    stage = Stage(ladder)
    for run in runs:
        stage.add(run)
    tiles = []
    while stage.rows:
        size = stage.tiling.next_size(stage.rows)
        tiles.append(Tile("net", SIGNATURE, stage.take(size), size))
    # Lanes end their tiles in any order, and one slot's memory serves them all.
    order.shuffle(tiles)
    memory = np.full((ladder[-1], 2), STALE)
    results = {}
    for tile in tiles:
        slot = {"x": memory[: tile.size]}
        tile.fill(slot)
        for run, outputs in tile.collect(affine(slot)):
            assert run not in results
            results[run] = outputs["y"].copy()
    assert set(results) == set(runs)
    for run in runs:
        alone = np.concatenate([affine({"x": row[None]})["y"] for row in run.tensors["x"]])
        assert results[run].tobytes() == alone.tobytes()
