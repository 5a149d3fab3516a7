"""What every kind of engine and lane must do, whatever runs the tiles."""

import threading
from pathlib import Path

import numpy as np
import pytest

from models import catalogue
from tensorq_engines import (
    LaneClosed,
    ModelLoadFailed,
    ShapeRefused,
    SlotMisuse,
    SlotState,
    SlotTimeout,
    TileFailed,
    create_lane,
    warm,
)

from .conftest import engine_of

PROFILE = "[[profile]]\nx = { min = [1, 8], opt = [4, 16], max = [8, 32] }\n"


def rows(count, width=3, start=0.0):
    return np.arange(count * width, dtype=np.float32).reshape(count, width) + np.float32(start)


def fill(lane, engine, **tile):
    slot = lane.acquire(engine, {name: array.shape for name, array in tile.items()})
    assert slot is not None
    for name, array in tile.items():
        slot.inputs[name][...] = array
    return slot


class TestEngine:
    def test_describes_itself_before_load_and_is_the_same_after(self, tmp_path, kind):
        engine = engine_of(kind, tmp_path, catalogue.mlp())
        before = (engine.name, engine.signature, engine.ladder, engine.footprint, engine.profiles)
        assert not engine.loaded
        with engine:
            assert engine.loaded
            assert before == (engine.name, engine.signature, engine.ladder, engine.footprint, engine.profiles)

    def test_closes_twice_and_loads_again(self, tmp_path, kind, lane):
        engine = engine_of(kind, tmp_path, catalogue.affine())
        engine.close()
        for _ in range(2):
            engine.load()
            engine.load()
            assert lane.run(engine, {"x": rows(1)})["y"].shape == (1, 3)
            engine.close()
            engine.close()
            assert not engine.loaded

    def test_a_file_that_is_no_model_fails_to_load_with_its_name_and_file(self, tmp_path, kind):
        engine = engine_of(kind, tmp_path, catalogue.affine())
        engine.source.write_bytes(b"not onnx at all")
        with pytest.raises(ModelLoadFailed, match=r"model-0.*model\.onnx.*again"):
            engine.load()
        assert not engine.loaded

    def test_an_operator_that_the_runtime_lacks_fails_to_load_with_the_cause(self, tmp_path, kind):
        model = catalogue.affine()
        model.graph.node[0].op_type = "NoSuchOperator"
        engine = engine_of(kind, tmp_path, model)
        with pytest.raises(ModelLoadFailed, match=r"model-0.*cannot load .*NoSuchOperator") as caught:
            engine.load()
        assert caught.value.__cause__ is not None

    def test_ladder_for_rows_leaves_out_sizes_that_no_profile_admits(self, open_engine):
        wide = "[[profile]]\nx = { min = [1, 8], opt = [1, 64], max = [2, 64] }\n"
        engine = open_engine(catalogue.affine(), PROFILE + wide)
        assert engine.ladder == (1, 2, 4, 8)
        assert engine.ladder_for({"x": (32,)}) == (1, 2, 4, 8)
        assert engine.ladder_for({"x": (33,)}) == (1, 2)
        with pytest.raises(ShapeRefused, match=r"8\.\.64"):
            engine.ladder_for({"x": (65,)})


class TestSlots:
    def test_views_are_writable_and_of_exactly_the_shapes_and_dtypes(self, open_engine, lane):
        engine = open_engine(catalogue.two_in_two_out())
        slot = lane.acquire(engine, {"a": (3, 4), "b": (3, 4)})
        assert {name: (view.shape, view.dtype) for name, view in slot.inputs.items()} == {
            "a": ((3, 4), np.dtype("float32")),
            "b": ((3, 4), np.dtype("int64")),
        }
        assert all(view.flags.writeable and view.flags.c_contiguous for view in slot.inputs.values())
        assert not np.shares_memory(slot.inputs["a"], slot.inputs["b"])

    def test_goes_from_filling_to_done_to_free(self, open_engine, lane):
        slot = fill(lane, open_engine(catalogue.affine()), x=rows(2))
        assert slot.state is SlotState.FILLING
        lane.submit(slot)
        outputs = slot.wait()
        assert slot.state is SlotState.DONE
        np.testing.assert_array_equal(outputs["y"], rows(2) * 2 + 1)
        np.testing.assert_array_equal(slot.wait(0)["y"], rows(2) * 2 + 1)
        assert not outputs["y"].flags.writeable
        slot.release()
        assert slot.state is SlotState.FREE

    def test_none_is_given_when_all_are_taken_and_an_abandoned_one_is_free_again(self, open_engine, lane):
        engine = open_engine(catalogue.affine())
        held = [lane.acquire(engine, {"x": (1, 3)}) for _ in range(lane.slot_count)]
        assert None not in held
        assert lane.acquire(engine, {"x": (1, 3)}) is None
        with pytest.raises(SlotMisuse, match="no slot is free"):
            lane.run(engine, {"x": rows(1)})
        held[0].release()
        assert lane.acquire(engine, {"x": (1, 3)}) is not None

    def test_misuse_is_refused(self, open_engine, lane):
        engine = open_engine(catalogue.affine())
        slot = fill(lane, engine, x=rows(2))
        with pytest.raises(SlotMisuse, match="submit it first"):
            slot.wait()
        lane.submit(slot)
        with pytest.raises(SlotMisuse, match="submit"):
            lane.submit(slot)
        with pytest.raises(SlotMisuse, match="inputs"):
            _ = slot.inputs
        slot.wait()
        slot.release()
        for use in (slot.wait, slot.release, lambda: slot.inputs, lambda: lane.submit(slot)):
            with pytest.raises(SlotMisuse, match="free"):
                use()

    def test_a_stale_hold_cannot_release_the_next_users_slot(self, open_engine, lane):
        engine = open_engine(catalogue.affine())
        stale = lane.acquire(engine, {"x": (1, 3)})
        other = lane.acquire(engine, {"x": (1, 3)})
        stale.release()
        current = lane.acquire(engine, {"x": (1, 3)})
        with pytest.raises(SlotMisuse):
            stale.release()
        assert lane.acquire(engine, {"x": (1, 3)}) is None
        assert current.state is other.state is SlotState.FILLING

    def test_a_running_slot_cannot_be_released_and_may_be_waited_for_again(self, open_engine, lane):
        x = np.tile(np.arange(384, dtype=np.float32), (512, 1))
        slot = fill(lane, open_engine(catalogue.slow()), x=x)
        lane.submit(slot)
        with pytest.raises(TimeoutError):
            slot.wait(0)
        with pytest.raises(SlotTimeout, match=r"512, 384.*not done after 0"):
            slot.wait(0)
        with pytest.raises(SlotMisuse, match="wait"):
            slot.release()
        np.testing.assert_array_equal(slot.wait()["y"], np.roll(x, 24, axis=1))

    def test_of_another_lane_cannot_be_submitted(self, open_engine, lane, kind):
        slot = fill(lane, open_engine(catalogue.affine()), x=rows(1))
        with create_lane(kind) as other, pytest.raises(SlotMisuse, match="another lane"):
            other.submit(slot)


class TestTiles:
    def test_two_slots_overlap_and_each_keeps_its_own(self, open_engine, lane):
        engine = open_engine(catalogue.slow())
        first = np.tile(np.arange(384, dtype=np.float32), (256, 1))
        slots = [fill(lane, engine, x=first)]
        lane.submit(slots[0])
        slots.append(fill(lane, engine, x=first + 1000))
        lane.submit(slots[1])
        results = [slot.wait()["y"] for slot in slots]
        np.testing.assert_array_equal(results[0], np.roll(first, 24, axis=1))
        np.testing.assert_array_equal(results[1], np.roll(first, 24, axis=1) + 1000)

    def test_garbage_in_a_free_slot_does_not_reach_the_tile_that_runs_or_its_results(self, open_engine, lane):
        engine = open_engine(catalogue.slow())
        x = np.tile(np.arange(384, dtype=np.float32), (256, 1))
        running = fill(lane, engine, x=x)
        lane.submit(running)
        garbage = fill(lane, engine, x=np.full_like(x, np.nan))
        results = running.wait()
        lane.submit(garbage)
        garbage.wait()
        garbage.release()
        for _ in range(3):
            again = fill(lane, engine, x=np.full_like(x, np.nan))
            lane.submit(again)
            again.wait()
            again.release()
        np.testing.assert_array_equal(results["y"], np.roll(x, 24, axis=1))

    @pytest.mark.parametrize("name", ["affine", "identity"])
    def test_what_run_returned_stays_right_whatever_runs_next(self, open_engine, lane, name):
        model = catalogue.affine() if name == "affine" else catalogue.identity_int64()
        engine = open_engine(model)
        dtype = engine.signature.inputs[0].dtype
        kept = lane.run(engine, {"x": np.ones((3, 4), dtype)})
        before = kept["y"].copy()
        kept_is_ours = kept["y"].flags.owndata and kept["y"].flags.writeable
        for value in range(4):
            lane.run(engine, {"x": np.full((3, 4), value, dtype)})
        assert kept_is_ours
        np.testing.assert_array_equal(kept["y"], before)

    def test_shapes_change_from_tile_to_tile(self, open_engine, lane):
        engine = open_engine(catalogue.affine())
        for shape in ((1, 1), (7, 300), (2, 3), (32, 5)):
            x = rows(*shape, start=0.5)
            np.testing.assert_array_equal(lane.run(engine, {"x": x})["y"], x * 2 + 1)

    def test_two_models_take_turns_on_one_lane(self, open_engine, lane):
        affine, gather = open_engine(catalogue.affine()), open_engine(catalogue.gather())
        for _ in range(3):
            assert lane.run(affine, {"x": rows(2)})["y"][0].tolist() == [1, 3, 5]
            assert lane.run(gather, {"index": np.array([4])})["y"].tolist() == [[16, 17, 18, 19]]

    def test_a_failing_tile_gives_the_engines_words_and_the_lane_goes_on(self, open_engine, lane):
        engine = open_engine(catalogue.gather())
        slot = fill(lane, engine, index=np.array([0, 99]))
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

    def test_an_output_whose_first_axis_is_not_the_rows_fails_the_tile(self, open_engine, lane):
        engine = open_engine(catalogue.compress())
        with pytest.raises(TileFailed, match="for a tile of 3 rows"):
            lane.run(engine, {"keep": np.array([True, False, True])})
        override = open_engine(catalogue.compress(), 'batch_axis = "none"')
        assert lane.run(override, {"keep": np.array([True, False, True])})["y"].tolist() == [1, 1]

    def test_scalar_outputs_stay_scalars(self, open_engine, lane):
        result = lane.run(open_engine(catalogue.no_batch()), {"x": rows(3)})["y"]
        assert (result.shape, result.dtype, float(result)) == ((), np.dtype("float32"), 36.0)

    def test_two_lanes_run_one_engine_at_once(self, open_engine, kind):
        engine = open_engine(catalogue.affine())
        wrong = []

        def work(lane, start):
            for step in range(30):
                x = rows(1 + step % 5, start=start + step)
                if not np.array_equal(lane.run(engine, {"x": x})["y"], x * 2 + 1):
                    wrong.append((start, step))

        with create_lane(kind) as one, create_lane(kind) as two:
            threads = [
                threading.Thread(target=work, args=(lane, start)) for lane, start in ((one, 0), (two, 500))
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert wrong == []


class TestRefusals:
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
    def test_shapes_outside_are_refused_and_take_no_slot(self, open_engine, lane, shapes, words):
        engine = open_engine(catalogue.affine(), PROFILE)
        for _ in range(lane.slot_count + 1):
            with pytest.raises(ShapeRefused, match=words):
                lane.acquire(engine, shapes)
        assert lane.run(engine, {"x": rows(8, 32)})["y"].shape == (8, 32)

    def test_a_fixed_batch_takes_only_its_own_rows(self, open_engine, lane):
        engine = open_engine(catalogue.fixed_batch())
        assert (engine.ladder, engine.signature.batch_axis) == ((4,), 0)
        with pytest.raises(ShapeRefused):
            lane.acquire(engine, {"x": (3, 3)})

    def test_inputs_that_differ_in_rows_are_refused(self, open_engine, lane):
        engine = open_engine(catalogue.two_in_two_out())
        with pytest.raises(ShapeRefused, match="differ in rows"):
            lane.acquire(engine, {"a": (2, 4), "b": (3, 4)})

    def test_run_refuses_another_dtype_and_takes_another_byte_order(self, open_engine, lane):
        engine = open_engine(catalogue.affine())
        with pytest.raises(ShapeRefused, match=r"float64.*float32.*astype"):
            lane.run(engine, {"x": rows(1).astype(np.float64)})
        assert lane.run(engine, {"x": rows(1).astype(">f4")})["y"].tolist() == [[1, 3, 5]]

    def test_an_engine_that_is_not_loaded_is_refused(self, tmp_path, kind, lane):
        engine = engine_of(kind, tmp_path, catalogue.affine())
        with pytest.raises(SlotMisuse, match="not loaded"):
            lane.acquire(engine, {"x": (1, 3)})

    def test_an_engine_of_another_kind_is_refused(self, open_engine, kind):
        other = "onnxruntime" if kind == "reference" else "reference"
        with create_lane(other) as lane, pytest.raises(SlotMisuse, match="kind"):
            lane.acquire(open_engine(catalogue.affine()), {"x": (1, 3)})

    def test_a_lane_needs_two_slots(self, kind):
        with pytest.raises(ValueError, match="2 slots"):
            create_lane(kind, slot_count=1)


class TestClose:
    def test_with_tiles_pending_finishes_them_and_keeps_their_results(self, open_engine, kind):
        engine = open_engine(catalogue.slow())
        lane = create_lane(kind, slot_count=3)
        x = np.tile(np.arange(384, dtype=np.float32), (128, 1))
        slots = [fill(lane, engine, x=x + step) for step in range(3)]
        for slot in slots[:2]:
            lane.submit(slot)
        lane.close()
        lane.close()
        for step, slot in enumerate(slots[:2]):
            np.testing.assert_array_equal(slot.wait(0)["y"], np.roll(x, 24, axis=1) + step)
            slot.release()
        with pytest.raises(LaneClosed):
            lane.submit(slots[2])
        slots[2].release()
        with pytest.raises(LaneClosed):
            lane.acquire(engine, {"x": (1, 384)})

    def test_of_a_lane_that_never_ran_leaves_no_thread(self, kind):
        before = threading.active_count()
        create_lane(kind).close()
        assert threading.active_count() == before


class TestWarm:
    def test_runs_each_size_at_each_profiles_opt(self, open_engine, lane):
        tiles = warm(lane, open_engine(catalogue.affine(), PROFILE))
        assert [tile.shapes["x"] for tile in tiles] == [(1, 16), (4, 16), (8, 16)]
        assert all(tile.seconds > 0 for tile in tiles)

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
