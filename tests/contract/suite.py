"""What every kind of engine and lane must do, whatever runs the tiles.

A folder of tests that imports these classes has the fixtures ``subject`` and ``lane``.
"""

import queue
import threading
import time

import numpy as np
import pytest

from contract.subject import fill, garbage
from tensorq_engines import (
    EngineMemory,
    LaneClosed,
    LaneMemory,
    ShapeRefused,
    SlotMisuse,
    SlotState,
    SlotTimeout,
    create_lane,
    warm,
)


def run_slot(lane, case, tile):
    slot = fill(lane, case, tile)
    lane.submit(slot)
    return slot


class TestEngine:
    def test_describes_itself_before_load_and_is_the_same_after(self, subject):
        engine = subject.plain().engine
        engine.close()
        assert not engine.loaded

        def described():
            return (
                engine.name,
                engine.signature,
                engine.ladder,
                engine.footprint,
                engine.profiles,
                engine.identity,
            )

        before = described()
        with engine:
            assert engine.loaded
            assert before == described()

    def test_models_of_different_bytes_have_different_identities(self, subject):
        assert subject.plain().engine.identity == subject.plain().engine.identity
        assert subject.plain().engine.identity != subject.slow().engine.identity

    def test_closes_twice_and_loads_again(self, subject, lane):
        case = subject.plain()
        case.engine.close()
        for _ in range(2):
            case.engine.load()
            case.engine.load()
            case.check(lane.run(case.engine, case.tile()), case.tile())
            case.engine.close()
            case.engine.close()
            assert not case.engine.loaded

    def test_has_taken_memory_while_loaded_and_none_once_closed(self, subject, lane):
        case = subject.plain()
        lane.run(case.engine, case.tile())
        memory, footprint = case.engine.memory, case.engine.footprint
        assert memory.weights_bytes > 0
        assert memory.context_bytes >= 0
        assert 0 <= memory.arena_bytes <= footprint.arena_bytes
        assert memory.total_bytes == memory.weights_bytes + memory.context_bytes + memory.arena_bytes
        case.engine.close()
        assert case.engine.memory == EngineMemory()

    def test_says_where_its_activations_are(self, subject, lane):
        case = subject.plain()
        lane.run(case.engine, case.tile())
        shared = lane.memory.arena_bytes, case.engine.memory.arena_bytes
        assert (shared[1] == 0) if case.engine.shares_activations else (shared[0] == 0)


class TestLaneMemory:
    def test_is_nothing_before_the_first_tile_and_after_the_end(self, subject):
        case = subject.plain()
        with subject.new_lane() as lane:
            assert lane.memory == LaneMemory()
            lane.run(case.engine, case.tile())
            taken = lane.memory
            assert taken.total_bytes == taken.arena_bytes + taken.io_bytes
            if case.engine.shares_activations:
                assert taken.arena_bytes >= case.engine.footprint.arena_bytes
                assert min(taken.io_bytes, taken.pinned_bytes) > 0
        assert lane.memory == LaneMemory()


class TestSlots:
    def test_views_are_writable_and_of_exactly_the_shapes_and_dtypes(self, subject, lane):
        case = subject.plain()
        slot = lane.acquire(case.engine, case.shapes())
        assert {name: (view.shape, view.dtype) for name, view in slot.inputs.items()} == {
            spec.name: (case.shapes()[spec.name], np.dtype(spec.dtype))
            for spec in case.engine.signature.inputs
        }
        assert all(view.flags.writeable and view.flags.c_contiguous for view in slot.inputs.values())

    def test_goes_from_filling_to_done_to_free(self, subject, lane):
        case = subject.plain()
        slot = fill(lane, case, case.tile())
        assert slot.state is SlotState.FILLING
        lane.submit(slot)
        outputs = slot.wait()
        assert slot.state is SlotState.DONE
        case.check(outputs, case.tile())
        case.check(slot.wait(0), case.tile())
        assert not any(array.flags.writeable for array in outputs.values())
        slot.release()
        assert slot.state is SlotState.FREE

    def test_none_is_given_when_all_are_taken_and_an_abandoned_one_is_free_again(self, subject, lane):
        case = subject.plain()
        held = [lane.acquire(case.engine, case.shapes()) for _ in range(lane.slot_count)]
        assert None not in held
        assert lane.acquire(case.engine, case.shapes()) is None
        with pytest.raises(SlotMisuse, match="no slot is free"):
            lane.run(case.engine, case.tile())
        held[0].release()
        assert lane.acquire(case.engine, case.shapes()) is not None

    def test_misuse_is_refused(self, subject, lane):
        case = subject.plain()
        slot = fill(lane, case, case.tile())
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

    def test_a_stale_hold_cannot_release_the_next_users_slot(self, subject, lane):
        case = subject.plain()
        stale, other = (lane.acquire(case.engine, case.shapes()) for _ in range(2))
        stale.release()
        current = lane.acquire(case.engine, case.shapes())
        with pytest.raises(SlotMisuse):
            stale.release()
        assert lane.acquire(case.engine, case.shapes()) is None
        assert current.state is other.state is SlotState.FILLING

    def test_a_running_slot_cannot_be_released_and_may_be_waited_for_again(self, subject, lane):
        case = subject.slow()
        lane.run(case.engine, case.tile())
        slot = run_slot(lane, case, case.tile())
        with pytest.raises(TimeoutError):
            slot.wait(0)
        with pytest.raises(SlotTimeout, match=rf"\[{case.rows}, .*not done after 0"):
            slot.wait(0)
        with pytest.raises(SlotMisuse, match="wait"):
            slot.release()
        case.check(slot.wait(), case.tile())

    def test_busy_time_is_there_once_the_tile_is_done_and_until_it_is_released(self, subject, lane):
        case = subject.slow()
        slot = fill(lane, case, case.tile())
        with pytest.raises(SlotMisuse, match=r"busy_s .*submit it first"):
            _ = slot.busy_s
        lane.submit(slot)
        with pytest.raises(SlotMisuse, match=r"busy_s .*wait"):
            _ = slot.busy_s
        slot.wait()
        assert slot.busy_s == slot.busy_s > 0
        slot.release()
        with pytest.raises(SlotMisuse, match=r"busy_s .*free"):
            _ = slot.busy_s

    def test_busy_times_of_tiles_that_queue_do_not_overlap(self, subject, lane):
        case = subject.slow()
        for round_ in range(3):
            slots = [fill(lane, case, case.tile(seed)) for seed in range(2)]
            started = time.perf_counter()
            for slot in slots:
                lane.submit(slot)
            for slot in slots:
                slot.wait()
            took_s = time.perf_counter() - started
            busy_s = [slot.busy_s for slot in slots]
            assert all(busy > 0 for busy in busy_s)
            assert sum(busy_s) <= 1.01 * took_s, round_
            for slot in slots:
                slot.release()

    def test_of_another_lane_cannot_be_submitted(self, subject, lane):
        case = subject.plain()
        slot = fill(lane, case, case.tile())
        with subject.new_lane() as other, pytest.raises(SlotMisuse, match="another lane"):
            other.submit(slot)


class TestTiles:
    def test_two_slots_overlap_and_each_keeps_its_own(self, subject, lane):
        case = subject.slow()
        slots = [run_slot(lane, case, case.tile(seed)) for seed in range(2)]
        for seed, slot in enumerate(slots):
            case.check(slot.wait(), case.tile(seed))

    def test_garbage_in_a_free_slot_does_not_reach_the_tile_that_runs_or_its_results(self, subject, lane):
        case = subject.slow()
        tile = case.tile()
        running = run_slot(lane, case, tile)
        waste = fill(lane, case, garbage(tile))
        results = running.wait()
        lane.submit(waste)
        waste.wait()
        waste.release()
        for _ in range(3):
            again = run_slot(lane, case, garbage(tile))
            again.wait()
            again.release()
        case.check(results, tile)

    def test_what_run_returned_stays_right_whatever_runs_next(self, subject, lane):
        case = subject.plain()
        kept = lane.run(case.engine, case.tile())
        assert all(array.flags.owndata and array.flags.writeable for array in kept.values())
        for seed in range(1, 5):
            lane.run(case.engine, case.tile(seed))
        case.check(kept, case.tile())

    def test_the_sizes_of_the_ladder_take_turns(self, subject, lane):
        case = subject.plain()
        for seed in range(3):
            for rows in case.engine.ladder:
                tile = case.tile(seed, rows)
                case.check(lane.run(case.engine, tile), tile)

    def test_two_models_take_turns_on_one_lane(self, subject, lane):
        cases = [subject.plain(), subject.slow()]
        for seed in range(3):
            for case in cases:
                case.check(lane.run(case.engine, case.tile(seed)), case.tile(seed))

    def test_two_lanes_run_one_engine_at_once(self, subject):
        case = subject.plain()
        tiles = [case.tile(seed) for seed in range(4)]
        wants = [case.want(tile) for tile in tiles]
        wrong = []

        def work(lane, start):
            for step in range(30):
                seed = (start + step) % 4
                got = lane.run(case.engine, tiles[seed])
                if not all(np.array_equal(got[name], array) for name, array in wants[seed].items()):
                    wrong.append((start, step))

        with subject.new_lane() as one, subject.new_lane() as two:
            threads = [threading.Thread(target=work, args=pair) for pair in ((one, 0), (two, 2))]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert wrong == []

    def test_a_collector_thread_waits_and_releases_while_another_thread_submits(self, subject):
        case = subject.plain()
        tiles = [case.tile(seed) for seed in range(4)]
        line, faults, freed = queue.SimpleQueue(), [], threading.Semaphore(3)

        def collect():
            while (item := line.get()) is not None:
                seed, slot = item
                try:
                    case.check(slot.wait(), tiles[seed])
                except AssertionError as exc:
                    faults.append((seed, exc))
                slot.release()
                freed.release()

        with subject.new_lane(3) as lane:
            collector = threading.Thread(target=collect)
            collector.start()
            for step in range(100):
                freed.acquire()
                line.put((step % 4, run_slot(lane, case, tiles[step % 4])))
            line.put(None)
            collector.join()
        assert faults == []


class TestRefusals:
    def test_shapes_outside_are_refused_and_take_no_slot(self, subject, lane):
        case = subject.plain()
        for _ in range(lane.slot_count + 1):
            with pytest.raises(ShapeRefused, match=case.outside_words):
                lane.acquire(case.engine, case.outside)
        case.check(lane.run(case.engine, case.tile()), case.tile())

    def test_run_refuses_another_dtype_and_takes_another_byte_order(self, subject, lane):
        case = subject.plain()
        wide = {name: array.astype(np.complex128) for name, array in case.tile().items()}
        with pytest.raises(ShapeRefused, match=r"complex128.*astype"):
            lane.run(case.engine, wide)
        swapped = {name: array.astype(array.dtype.newbyteorder(">")) for name, array in case.tile().items()}
        case.check(lane.run(case.engine, swapped), case.tile())

    def test_an_engine_that_is_not_loaded_is_refused(self, subject, lane):
        case = subject.plain()
        case.engine.close()
        with pytest.raises(SlotMisuse, match="not loaded"):
            lane.acquire(case.engine, case.shapes())

    def test_an_engine_of_another_kind_is_refused(self, subject):
        case = subject.plain()
        other = "onnxruntime" if subject.kind == "reference" else "reference"
        with create_lane(other) as lane, pytest.raises(SlotMisuse, match="kind"):
            lane.acquire(case.engine, case.shapes())

    def test_a_lane_needs_two_slots(self, subject):
        with pytest.raises(ValueError, match="2 slots"):
            subject.new_lane(1)


class TestClose:
    def test_with_tiles_pending_finishes_them_and_keeps_their_results(self, subject):
        case = subject.slow()
        lane = subject.new_lane(3)
        slots = [fill(lane, case, case.tile(seed)) for seed in range(3)]
        for slot in slots[:2]:
            lane.submit(slot)
        lane.close()
        lane.close()
        for seed, slot in enumerate(slots[:2]):
            case.check(slot.wait(0), case.tile(seed))
            slot.release()
        with pytest.raises(LaneClosed):
            lane.submit(slots[2])
        slots[2].release()
        with pytest.raises(LaneClosed):
            lane.acquire(case.engine, case.shapes())

    def test_of_a_lane_that_never_ran_leaves_no_thread(self, subject):
        before = threading.active_count()
        subject.new_lane().close()
        assert threading.active_count() == before


class TestWarm:
    def test_runs_each_size_of_the_ladder(self, subject, lane):
        case = subject.plain()
        tiles = warm(lane, case.engine)
        assert [tile.rows for tile in tiles] == list(case.engine.ladder)
        assert all(tile.seconds > 0 for tile in tiles)
