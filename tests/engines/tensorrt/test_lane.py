"""Lanes over the fake: failures of a tile, of memory and of the device, and what waits do."""

import numpy as np
import pytest

from tensorq_engines import EngineFatal, SlotMisuse, TileFailed
from tensorq_engines.base.profile import Profile
from tensorq_engines.tensorrt import waiting
from tensorq_engines.tensorrt.cuda.stream import Event, Stream
from tensorq_engines.tensorrt.pinned import LEDGER
from tensorq_engines.tensorrt.waiting import spins

BLOCKING_SYNC = 1


class TestFailures:
    def test_a_run_that_is_refused_fails_its_tile_in_tensorrts_words(
        self, fake, open_plan, open_lane, run, fill
    ):
        engine, lane = open_plan(), open_lane()
        run(lane, engine, 8)
        run(lane, engine, 3)
        fake.behaviour.refuse_runs = 1
        slot = fill(lane, engine, 3)
        lane.submit(slot)
        for _ in range(2):
            with pytest.raises(TileFailed, match=r"x \[3, 16\].*the fake refuses to run"):
                slot.wait()
        slot.release()
        run(lane, engine, 3)

    def test_a_context_that_is_refused_fails_the_tile_and_is_tried_again(
        self, fake, open_plan, open_lane, run
    ):
        engine, lane = open_plan(), open_lane()
        fake.behaviour.refuse_contexts = 1
        with pytest.raises(TileFailed, match="out of memory for a context"):
            run(lane, engine, 8)
        run(lane, engine, 8)

    def test_a_copy_that_fails_fails_its_tile(self, fake, open_plan, open_lane, run):
        engine, lane = open_plan(), open_lane()
        run(lane, engine, 3)
        fake.cuda.fail("cudaMemcpyAsync", 1)
        with pytest.raises(TileFailed, match="cudaMemcpyAsync returned 1"):
            run(lane, engine, 3)
        run(lane, engine, 3)

    def test_a_submit_that_is_interrupted_leaves_no_result(
        self, monkeypatch, open_plan, open_lane, run, fill
    ):
        engine, lane = open_plan(), open_lane()
        run(lane, engine, 8)
        slot = fill(lane, engine)

        def interrupt(*_):
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr("tensorq_engines.tensorrt.seat.Seat.run", interrupt)
            with pytest.raises(KeyboardInterrupt):
                lane.submit(slot)
        with pytest.raises(TileFailed, match="KeyboardInterrupt"):
            slot.wait()
        slot.release()
        run(lane, engine, 8)

    def test_page_locked_memory_has_a_limit_of_its_own(self, monkeypatch, open_plan, open_lane, run):
        engine, lane = open_plan(), open_lane()
        monkeypatch.setattr(LEDGER, "limit_bytes", LEDGER.taken_bytes + 1000)
        for _ in range(lane.slot_count + 1):
            with pytest.raises(TileFailed, match=r"page-locked memory, .* of .* are taken"):
                run(lane, engine, 8)
        monkeypatch.setattr(LEDGER, "limit_bytes", None)
        run(lane, engine, 8)

    def test_a_model_that_was_closed_while_its_slot_was_filled_fails_the_tile(
        self, open_plan, open_lane, fill
    ):
        engine, lane = open_plan(), open_lane()
        slot = fill(lane, engine)
        engine.close()
        lane.submit(slot)
        with pytest.raises(SlotMisuse, match="was closed while a tile of it waited"):
            slot.wait()
        slot.release()


class TestSticky:
    def test_it_is_fatal_everywhere_and_nothing_is_torn_down(self, fake, open_plan, open_lane, run, fill):
        engine, other = open_plan(), open_plan()
        lane, second = open_lane(), open_lane()
        run(lane, engine, 8)
        run(second, other, 8)
        slot, held = fill(lane, engine, 3), fill(second, other)
        before = (fake.engines, fake.contexts, dict(fake.cuda.device), list(fake.cuda.ended))
        fake.behaviour.sticky_after_run = 700
        lane.submit(slot)
        for _ in range(2):
            with pytest.raises(EngineFatal, match=r"returned 700 .*restart the process"):
                slot.wait()
        for call in (
            lambda: lane.acquire(engine, {"x": (8, 16)}),
            lambda: second.submit(held),
            lambda: second.acquire(other, {"x": (8, 16)}),
            open_plan,
        ):
            with pytest.raises(EngineFatal, match="700"):
                call()
        for thing in (engine, other, lane, second):
            thing.close()
            thing.close()
        slot.release()
        held.release()
        assert before == (fake.engines, fake.contexts, dict(fake.cuda.device), list(fake.cuda.ended))

    def test_a_run_that_is_refused_because_of_one_says_so(self, fake, open_plan, open_lane, run, fill):
        engine, lane = open_plan(), open_lane()
        run(lane, engine, 3)
        slot = fill(lane, engine, 3)
        fake.cuda.sticky = 719
        lane.submit(slot)
        with pytest.raises(EngineFatal, match="719"):
            slot.wait()

    def test_one_that_surfaces_before_a_capture_is_no_failed_capture(self, fake, open_plan, open_lane, run):
        engine, lane = open_plan(), open_lane()
        fake.behaviour.sticky_after_run = 700
        with pytest.raises(EngineFatal, match="700"):
            run(lane, engine, 8)
        assert not engine.graphs.failures


class TestClose:
    def test_of_an_engine_ends_graphs_then_contexts_then_the_engine(self, fake, open_plan, open_lane, run):
        engine, lane = open_plan(), open_lane(arena="private")
        for _ in range(2):
            run(lane, engine, 8)
        fake.cuda.ended.clear()
        engine.close()
        ended = [what for what in fake.cuda.ended if what != "memory"]
        assert ended == ["graph", "graph", "context", "engine"]

    def test_of_a_lane_ends_graphs_then_contexts_then_memory_then_the_stream(
        self, fake, open_plan, open_lane, run
    ):
        engines, lane = [open_plan(), open_plan()], open_lane()
        for engine in engines:
            for _ in range(2):
                run(lane, engine, 8)
        fake.cuda.ended.clear()
        lane.close()
        ended = fake.cuda.ended
        assert ended[-1] == "stream"
        assert set(ended[ended.index("stream") - 2 : -1]) == {"memory"}
        for first, last in (("graph", "context"), ("context", "stream")):
            assert ended.index(first) < len(ended) - 1 - ended[::-1].index(last)
        assert ended.count("graph") == 4
        assert ended.count("context") == 2
        assert "engine" not in ended
        assert fake.cuda.used_bytes == 0
        assert fake.cuda.pinned == {}
        assert fake.cuda.events == {}

    def test_of_a_lane_leaves_other_lanes_of_the_engine(self, open_plan, open_lane, run):
        engine, one, two = open_plan(), open_lane(), open_lane()
        for lane in (one, two):
            run(lane, engine, 8)
        one.close()
        run(two, engine, 8)

    def test_waits_for_a_tile_that_is_running(self, open_plan, open_lane, fill):
        engine, lane = open_plan(), open_lane()
        slot = fill(lane, engine, value=2.0)
        lane.submit(slot)
        engine.close()
        np.testing.assert_array_equal(slot.wait()["y"], np.full((8, 16), 5.0))
        slot.release()


class TestViews:
    def test_of_one_slot_are_made_once_and_anew_when_its_memory_moves(self, open_plan, open_lane, fill, run):
        engine, lane = open_plan(), open_lane()
        first = fill(lane, engine)
        view = first.inputs["x"]
        first.release()
        again = fill(lane, engine)
        assert again.inputs["x"] is view
        again.release()
        wide = open_plan(profiles=(Profile.of(x=([1, 4], [8, 16], [32, 50_000])),))
        run(lane, wide, 8, 50_000)
        moved = fill(lane, engine)
        assert moved.inputs["x"] is not view
        moved.release()
        run(lane, engine, 8)

    def test_of_another_slot_are_others(self, open_plan, open_lane, fill):
        engine, lane = open_plan(), open_lane()
        one, two = fill(lane, engine, value=1.0), fill(lane, engine, value=2.0)
        assert not np.shares_memory(one.inputs["x"], two.inputs["x"])
        for slot in (one, two):
            lane.submit(slot)
        assert [float(slot.wait()["y"][0, 0]) for slot in (one, two)] == [3.0, 5.0]

    def test_what_a_caller_does_to_the_mapping_is_the_callers_own(self, open_plan, open_lane, fill, run):
        engine, lane = open_plan(), open_lane()
        slot = fill(lane, engine)
        slot.inputs.clear()
        slot.release()
        run(lane, engine, 8)


class TestWaiting:
    @pytest.mark.parametrize(
        ("kind", "cores", "lanes", "want"),
        [
            ("auto", 16, 1, True),
            ("auto", 16, 4, True),
            ("auto", 16, 5, False),
            ("auto", 2.5, 1, False),
            ("spin", 1, 8, True),
            ("sleep", 64, 1, False),
        ],
    )
    def test_auto_spins_where_cores_are_plenty(self, monkeypatch, kind, cores, lanes, want):
        monkeypatch.setattr(waiting, "usable_cores", lambda: cores)
        assert spins(kind, lanes) is want

    @pytest.mark.parametrize(("wait", "sleeps"), [("spin", 0), ("sleep", BLOCKING_SYNC)])
    def test_events_are_made_for_it(self, monkeypatch, fake, open_plan, open_lane, run, wait, sleeps):
        flags = []
        make = fake.cuda.runtime.cudaEventCreateWithFlags
        monkeypatch.setattr(
            fake.cuda.runtime, "cudaEventCreateWithFlags", lambda flag: flags.append(flag) or make(flag)
        )
        run(open_lane(wait=wait), open_plan(), 8)
        assert {flag & BLOCKING_SYNC for flag in flags} == {sleeps}


class TestBusyTime:
    """The device's clock counts what streams do: a tile is three steps, and each mark is one."""

    def test_is_the_tiles_own_on_the_devices_clock(self, fake, open_plan, open_lane, run, fill):
        engine, lane = open_plan(), open_lane()
        for _ in range(3):
            run(lane, engine, 8)
        fake.cuda.clock = lambda: fake.cuda.steps
        epoch, stream = Event(timing=True), Stream()
        epoch.record(stream)
        epoch.wait()
        slots = [fill(lane, engine) for _ in range(2)]
        for slot in slots:
            lane.submit(slot)
        for slot in slots:
            slot.wait()
        assert [slot.busy_s for slot in slots] == [4, 4]
        assert [slot.span_s(epoch) for slot in slots] == [(1, 5), (6, 10)]
        stream.close()

    def test_of_a_tile_that_is_captured_leaves_the_capture_out(self, fake, open_plan, open_lane, fill):
        engine, lane = open_plan(), open_lane(graph_trials=5)
        fake.cuda.clock = lambda: fake.cuda.steps
        slot = fill(lane, engine)
        lane.submit(slot)
        slot.wait()
        assert fake.cuda.calls["cudaGraphLaunch"] > 5
        assert slot.busy_s == 4

    def test_of_a_tile_that_never_ran_is_nothing(self, fake, open_plan, open_lane, run, fill):
        engine, lane = open_plan(), open_lane()
        run(lane, engine, 3)
        fake.behaviour.refuse_runs = 1
        slot = fill(lane, engine, 3)
        lane.submit(slot)
        with pytest.raises(TileFailed):
            slot.wait()
        assert slot.busy_s == 0
        with pytest.raises(TileFailed):
            slot.span_s(slot.event)


def test_lanes_that_serialize_queue_behind_each_other(fake, open_plan, open_lane, run):
    engine = open_plan()
    lanes = [open_lane(serialize=True) for _ in range(2)]
    for _ in range(3):
        for lane in lanes:
            run(lane, engine, 8)
    assert fake.cuda.calls["cudaStreamWaitEvent"] == 5
    lanes[0].close()
    run(lanes[1], engine, 8)
