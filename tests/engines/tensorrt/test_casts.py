"""Tensors whose dtypes in jobs and in the engine differ, and outputs whose shapes the data decide."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from models import catalogue
from tensorq_engines import Profile, TileFailed
from tensorq_engines.tensorrt.casts import PAIRS, cast_in, cast_out, is_carried

ROWS = Profile.of(x=([1, 4], [8, 4], [32, 4]))


class TestPure:
    def test_only_known_pairs_are_carried(self):
        assert is_carried("uint8", "uint8")
        assert all(is_carried(*pair) for pair in PAIRS)
        assert not any(is_carried(engine, wire) for wire, engine in PAIRS)
        assert not is_carried("int64", "float32")

    @pytest.mark.parametrize("value", [-(2**31), 0, 2**31 - 1])
    def test_whole_numbers_survive(self, value):
        target = np.empty(2, np.int32)
        cast_in("x", np.array([value, 1]), target)
        assert target.tolist() == [value, 1]

    @pytest.mark.parametrize("value", [-(2**31) - 1, 2**31])
    def test_whole_numbers_beyond_the_engine_are_refused(self, value):
        with pytest.raises(TileFailed, match=rf"'x': got values .*{value}.* int32"):
            cast_in("x", np.array([value, 1]), np.empty(2, np.int32))

    def test_floats_round_and_become_infinite(self):
        target = np.empty(3, np.float16)
        cast_in("x", np.array([1 / 3, 1e6, np.nan], np.float32), target)
        assert target[0] == np.float16(1 / 3)
        assert np.isinf(target[1])
        assert np.isnan(target[2])

    def test_an_output_of_the_right_dtype_is_not_copied(self):
        array = np.ones(3, np.float32)
        assert cast_out(array, "float32") is array
        assert cast_out(array.astype(np.float16), "float32").dtype == np.float32

    def test_nothing_is_cast_in_an_empty_array(self):
        cast_in("x", np.empty(0, np.int64), np.empty(0, np.int32))


class TestPlans:
    """A plan without a sidecar says its own dtypes; one that was built says those of the ONNX file."""

    def test_a_bare_plan_takes_what_the_engine_takes(self, open_plan, open_lane):
        engine, lane = open_plan(catalogue.identity_int64(), (ROWS,)), open_lane()
        assert engine.signature.inputs[0].dtype == "int32"
        got = lane.run(engine, {"x": np.full((2, 4), 7, np.int32)})["y"]
        assert (got.dtype.name, got[0, 0]) == ("int32", 7)

    def test_a_built_one_takes_what_jobs_send(self, open_built, open_lane):
        engine, lane = open_built(catalogue.identity_int64()), open_lane()
        assert engine.signature.inputs[0].dtype == "int64"
        for value in (-5, 2**31 - 1):
            got = lane.run(engine, {"x": np.full((2, 4), value)})["y"]
            assert (got.dtype.name, got[0, 0]) == ("int64", value)
        with pytest.raises(TileFailed, match=r"int32.*TensorRT 10"):
            lane.run(engine, {"x": np.full((2, 4), 2**40)})
        assert lane.run(engine, {"x": np.zeros((2, 4), np.int64)})["y"].any() == np.False_

    def test_a_cast_tile_is_replayed_too_and_its_result_is_the_callers(self, open_built, open_lane):
        engine, lane = open_built(catalogue.identity_int64()), open_lane()
        kept = []
        for value in range(4):
            slot = lane.acquire(engine, {"x": (8, 4)})
            slot.inputs["x"][...] = value
            lane.submit(slot)
            kept.append(slot.wait()["y"])
            assert not kept[-1].flags.writeable
            slot.release()
        assert [int(array[0, 0]) for array in kept] == [0, 1, 2, 3]
        assert engine.graphs.hits == 3

    @pytest.mark.parametrize("name", ["identity_bool", "identity_uint8", "identity_float16"])
    def test_other_dtypes_pass_as_they_are(self, open_built, open_lane, name):
        engine, lane = open_built(catalogue.ALL[name]()), open_lane()
        dtype = np.dtype(engine.signature.inputs[0].dtype)
        x = np.arange(32).reshape(8, 4).astype(dtype)
        for _ in range(3):
            got = lane.run(engine, {"x": x})["y"]
            assert got.dtype == dtype
            np.testing.assert_array_equal(got, x)
        assert engine.graphs.hits == 2

    def test_scalars(self, open_built, open_lane):
        engine, lane = open_built(catalogue.no_batch()), open_lane()
        for value in (1, 2, 3):
            got = lane.run(engine, {"x": np.full((3, 3), value, np.float32)})["y"]
            assert (got.shape, float(got)) == ((), 9.0 * value)

    def test_several_inputs_and_outputs(self, open_built, open_lane):
        engine, lane = open_built(catalogue.two_in_two_out()), open_lane()
        for rows in (1, 3, 8, 8, 32):
            tile = {"a": np.full((rows, 4), 5.5, np.float32), "b": np.full((rows, 4), rows)}
            got = lane.run(engine, tile)
            np.testing.assert_array_equal(got["sum"], np.full((rows, 4), 5.5 + rows, np.float32))
            np.testing.assert_array_equal(got["diff"], np.full((rows, 4), 5 - rows))


def non_zero() -> onnx.ModelProto:
    """x f32[N, 4] -> y = 2x f32[N, 4], where int64[2, K]: one shape that is known, one that is not."""
    f32, i64 = TensorProto.FLOAT, TensorProto.INT64
    nodes = [helper.make_node("Add", ["x", "x"], ["y"]), helper.make_node("NonZero", ["x"], ["where"])]
    outputs = {"y": (f32, ["N", 4]), "where": (i64, [2, "K"])}
    return catalogue.build(nodes, {"x": (f32, ["N", 4])}, outputs)


class TestDynamicOutputs:
    @pytest.fixture
    def engine(self, open_built):
        return open_built(non_zero(), 'batch_axis = "none"\n')

    def test_come_in_the_size_that_each_run_gives(self, engine, open_lane):
        lane = open_lane()
        for seed in range(6):
            x = np.random.default_rng(seed).integers(0, 2 + seed % 2, (1 + 5 * seed, 4)).astype(np.float32)
            got = lane.run(engine, {"x": x})
            np.testing.assert_array_equal(got["where"], np.nonzero(x))
            np.testing.assert_array_equal(got["y"], 2 * x)
        assert engine.graphs.captures == 0
        assert engine.graphs.misses == {"dynamic": 6}

    def test_may_be_empty(self, engine, open_lane):
        got = open_lane().run(engine, {"x": np.zeros((3, 4), np.float32)})
        assert got["where"].shape == (2, 0)

    def test_of_two_slots_do_not_meet(self, engine, open_lane):
        lane = open_lane()
        slots = []
        for ones in (3, 1):
            slot = lane.acquire(engine, {"x": (4, 4)})
            slot.inputs["x"][...] = 0
            slot.inputs["x"][:ones, 0] = 1
            lane.submit(slot)
            slots.append(slot)
        assert [slot.wait()["where"].tolist() for slot in slots] == [[[0, 1, 2], [0, 0, 0]], [[0], [0]]]

    def test_without_memory_for_them_the_tile_fails_and_the_lane_goes_on(self, fake, engine, open_lane):
        lane = open_lane()
        lane.run(engine, {"x": np.ones((2, 4), np.float32)})
        fake.cuda.fail("cudaMalloc", 2)
        with pytest.raises(TileFailed, match="OutOfMemory"):
            lane.run(engine, {"x": np.ones((32, 4), np.float32)})
        got = lane.run(engine, {"x": np.ones((2, 4), np.float32)})
        assert got["where"].shape == (2, 8)

    def test_their_memory_goes_with_the_engine(self, fake, engine, open_lane):
        lane = open_lane()
        lane.run(engine, {"x": np.ones((32, 4), np.float32)})
        engine.close()
        lane.close()
        assert fake.cuda.used_bytes == 0
