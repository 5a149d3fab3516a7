"""What every kind of engine does with models of the catalogue, beside the contract that all models show."""

from pathlib import Path

import numpy as np
import pytest

from models import catalogue
from tensorq_engines import ModelLoadFailed, ShapeRefused, TileFailed, warm

from .conftest import HOST_KINDS, engine_of

PROFILE = "[[profile]]\nx = { min = [1, 8], opt = [4, 16], max = [8, 32] }\n"

on_hosts = pytest.mark.parametrize("kind", HOST_KINDS, indirect=True)


def rows(count, width=3, start=0.0):
    return np.arange(count * width, dtype=np.float32).reshape(count, width) + np.float32(start)


class TestLoad:
    @on_hosts
    def test_a_file_that_is_no_model_fails_with_its_name_and_file(self, tmp_path, kind):
        engine = engine_of(kind, tmp_path, catalogue.affine())
        engine.source.write_bytes(b"not onnx at all")
        with pytest.raises(ModelLoadFailed, match=r"model-0.*model\.onnx.*again"):
            engine.load()
        assert not engine.loaded

    @on_hosts
    def test_an_operator_that_the_runtime_lacks_fails_with_the_cause(self, tmp_path, kind):
        model = catalogue.affine()
        model.graph.node[0].op_type = "NoSuchOperator"
        engine = engine_of(kind, tmp_path, model)
        with pytest.raises(ModelLoadFailed, match=r"model-0.*cannot load .*NoSuchOperator") as caught:
            engine.load()
        assert caught.value.__cause__ is not None


class TestShapes:
    def test_ladder_for_rows_leaves_out_sizes_that_no_profile_admits(self, open_engine):
        wide = "[[profile]]\nx = { min = [1, 8], opt = [1, 64], max = [2, 64] }\n"
        engine = open_engine(catalogue.affine(), PROFILE + wide)
        assert engine.ladder == (1, 2, 4, 8)
        assert engine.ladder_for({"x": (32,)}) == (1, 2, 4, 8)
        assert engine.ladder_for({"x": (33,)}) == (1, 2)
        with pytest.raises(ShapeRefused, match=r"8\.\.64"):
            engine.ladder_for({"x": (65,)})

    def test_they_change_from_tile_to_tile(self, open_engine, lane):
        engine = open_engine(catalogue.affine())
        for shape in ((1, 1), (7, 300), (2, 3), (32, 5)):
            x = rows(*shape, start=0.5)
            np.testing.assert_array_equal(lane.run(engine, {"x": x})["y"], x * 2 + 1)

    @pytest.mark.parametrize(
        ("shapes", "words"),
        [
            ({"x": (1, 7)}, r"x \[1, 7\].*x \[1\.\.8, 8\.\.32\].*widen"),
            ({"x": (9, 16)}, r"1\.\.8"),
            ({"x": (1, 16, 1)}, r"x: float32\[N, W\]"),
            ({"x": (0, 16)}, "empty"),
            ({"z": (1, 16)}, r"\['z'\].*\['x'\]"),
        ],
    )
    def test_outside_the_profiles_are_refused(self, open_engine, lane, shapes, words):
        engine = open_engine(catalogue.affine(), PROFILE)
        with pytest.raises(ShapeRefused, match=words):
            lane.acquire(engine, shapes)
        assert lane.run(engine, {"x": rows(8, 32)})["y"].shape == (8, 32)

    def test_a_fixed_batch_takes_only_its_own_rows(self, open_engine, lane):
        engine = open_engine(catalogue.fixed_batch())
        assert (engine.ladder, engine.signature.batch_axis) == ((4,), 0)
        with pytest.raises(ShapeRefused):
            lane.acquire(engine, {"x": (3, 3)})
        assert lane.run(engine, {"x": rows(4)})["y"].tolist() == (rows(4) * 2).tolist()

    def test_inputs_that_differ_in_rows_are_refused(self, open_engine, lane):
        engine = open_engine(catalogue.two_in_two_out())
        with pytest.raises(ShapeRefused, match="differ in rows"):
            lane.acquire(engine, {"a": (2, 4), "b": (3, 4)})


class TestTensors:
    def test_several_inputs_and_outputs_of_several_dtypes(self, open_engine, lane):
        engine = open_engine(catalogue.two_in_two_out())
        slot = lane.acquire(engine, {"a": (3, 4), "b": (3, 4)})
        assert {name: view.dtype.name for name, view in slot.inputs.items()} == {"a": "float32", "b": "int64"}
        assert not np.shares_memory(slot.inputs["a"], slot.inputs["b"])
        slot.release()
        tile = {"a": np.full((3, 4), 5.5, np.float32), "b": np.full((3, 4), 2, np.int64)}
        got = lane.run(engine, tile)
        assert [(name, array.dtype.name, array[0, 0]) for name, array in got.items()] == [
            ("sum", "float32", 7.5),
            ("diff", "int64", 3),
        ]

    @pytest.mark.parametrize("name", ["identity_int64", "identity_bool", "identity_float16"])
    def test_what_run_returned_stays_right_whatever_runs_next(self, open_engine, lane, name):
        """An identity gives the runtime a reason to hand the inputs back."""
        engine = open_engine(catalogue.ALL[name]())
        dtype = engine.signature.inputs[0].dtype
        kept = lane.run(engine, {"x": np.ones((3, 4), dtype)})["y"]
        for value in range(4):
            lane.run(engine, {"x": np.full((3, 4), value, dtype)})
        assert kept.flags.owndata
        np.testing.assert_array_equal(kept, np.ones((3, 4), dtype))

    def test_two_models_take_turns_on_one_lane(self, open_engine, lane):
        affine, gather = open_engine(catalogue.affine()), open_engine(catalogue.gather())
        for _ in range(3):
            assert lane.run(affine, {"x": rows(2)})["y"][0].tolist() == [1, 3, 5]
            assert lane.run(gather, {"index": np.array([4])})["y"].tolist() == [[16, 17, 18, 19]]

    def test_an_output_whose_first_axis_is_not_the_rows_fails_the_tile(self, open_engine, lane):
        engine = open_engine(catalogue.compress())
        for _ in range(lane.slot_count + 1):
            with pytest.raises(TileFailed, match="for a tile of 3 rows"):
                lane.run(engine, {"keep": np.array([True, False, True])})
        override = open_engine(catalogue.compress(), 'batch_axis = "none"')
        assert lane.run(override, {"keep": np.array([True, False, True])})["y"].tolist() == [1, 1]

    def test_scalar_outputs_stay_scalars(self, open_engine, lane):
        result = lane.run(open_engine(catalogue.no_batch()), {"x": rows(3)})["y"]
        assert (result.shape, result.dtype, float(result)) == ((), np.dtype("float32"), 36.0)

    @on_hosts
    def test_a_failing_tile_gives_the_engines_words_and_the_lane_goes_on(self, open_engine, lane):
        engine = open_engine(catalogue.gather())
        slot = lane.acquire(engine, {"index": (2,)})
        slot.inputs["index"][...] = [0, 99]
        lane.submit(slot)
        for _ in range(2):
            with pytest.raises(TileFailed, match=r"model-0.*index \[2\].*bounds") as caught:
                slot.wait()
            assert caught.value.__cause__ is not None
        slot.release()
        for _ in range(lane.slot_count + 1):
            with pytest.raises(TileFailed):
                lane.run(engine, {"index": np.array([99])})
        assert lane.run(engine, {"index": np.array([1])})["y"].tolist() == [[4, 5, 6, 7]]


class TestWarm:
    def test_runs_each_size_at_each_profiles_opt(self, open_engine, lane):
        tiles = warm(lane, open_engine(catalogue.affine(), PROFILE))
        assert [tile.shapes["x"] for tile in tiles] == [(1, 16), (4, 16), (8, 16)]

    @on_hosts
    @pytest.mark.parametrize(
        ("name", "sizes"), [("mlp", [1, 8, 32]), ("fixed_batch", [4]), ("no_batch", [1]), ("free_axes", [])]
    )
    def test_without_profiles_runs_what_the_signature_fixes(self, open_engine, lane, name, sizes):
        assert [tile.rows for tile in warm(lane, open_engine(catalogue.ALL[name]()))] == sizes


def test_every_model_of_the_catalogue_runs_on_zeros(tmp_path: Path, kind, lane):
    for name, make in catalogue.ALL.items():
        with engine_of(kind, tmp_path, make()) as engine:
            shapes = {
                spec.name: [axis if isinstance(axis, int) else 2 for axis in spec.shape]
                for spec in engine.signature.inputs
            }
            tile = {spec.name: np.zeros(shapes[spec.name], spec.dtype) for spec in engine.signature.inputs}
            outputs = lane.run(engine, tile)
            assert list(outputs) == [spec.name for spec in engine.signature.outputs]
            assert [array.dtype.name for array in outputs.values()] == [
                spec.dtype for spec in engine.signature.outputs
            ], name
