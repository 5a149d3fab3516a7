"""Moments that only an engine under the test's control can provoke."""

import threading
import time
from typing import ClassVar

import numpy as np
import pytest

from tensorq.signature import Signature, TensorSpec
from tensorq_engines import (
    EngineFatal,
    Footprint,
    HostEngine,
    SlotMisuse,
    SlotState,
    SlotTimeout,
    ThreadedLane,
    TileFailed,
)


class GatedEngine(HostEngine):
    """y = x, once the gate is open; ``failure`` is raised instead where set."""

    kind: ClassVar[str] = "gated"
    signature = Signature((TensorSpec("x", "float32", ("N",)),), (TensorSpec("y", "float32", ("N",)),), 0)
    profiles = ()
    ladder = (1,)
    footprint = Footprint()
    identity = "gated"
    loaded = True

    def __init__(self):
        super().__init__("gated")
        self.gate = threading.Event()
        self.entered = threading.Semaphore(0)
        self.running = self.most_running = 0
        self.failure = None

    def load(self):
        self.loaded = True

    def close(self):
        self.loaded = False

    def execute(self, inputs):
        self.running += 1
        self.most_running = max(self.most_running, self.running)
        self.entered.release()
        assert self.gate.wait(10)
        self.running -= 1
        if self.failure is not None:
            raise self.failure
        return {"y": inputs["x"]}


class GatedLane(ThreadedLane):
    kind: ClassVar[str] = "gated"


@pytest.fixture
def engine():
    return GatedEngine()


@pytest.fixture
def lane(engine):
    with GatedLane(slot_count=3) as lane:
        yield lane
        engine.gate.set()


def submit(lane, engine, value=0.0):
    slot = lane.acquire(engine, {"x": (2,)})
    slot.inputs["x"][...] = value
    lane.submit(slot)
    return slot


def test_submit_returns_while_the_tile_runs_and_only_one_runs(engine, lane):
    slots = [submit(lane, engine, value) for value in range(3)]
    assert engine.entered.acquire(timeout=5)
    assert [slot.state for slot in slots] == [SlotState.RUNNING, SlotState.SUBMITTED, SlotState.SUBMITTED]
    with pytest.raises(SlotTimeout):
        slots[0].wait(0.01)
    engine.gate.set()
    assert [slot.wait(5)["y"].tolist() for slot in slots] == [[0, 0], [1, 1], [2, 2]]
    assert engine.most_running == 1


@pytest.mark.parametrize("state", [SlotState.RUNNING, SlotState.SUBMITTED])
def test_a_slot_of_a_running_or_queued_tile_cannot_be_released(engine, lane, state):
    slots = [submit(lane, engine) for _ in range(2)]
    assert engine.entered.acquire(timeout=5)
    slot = next(slot for slot in slots if slot.state is state)
    with pytest.raises(SlotMisuse, match=state.value):
        slot.release()
    engine.gate.set()
    slot.wait(5)
    slot.release()


def test_close_waits_for_the_tiles_that_were_submitted(engine, lane):
    slots = [submit(lane, engine, 7.0) for _ in range(2)]
    closing = threading.Thread(target=lane.close)
    closing.start()
    closing.join(0.05)
    assert closing.is_alive()
    engine.gate.set()
    closing.join(5)
    assert [slot.state for slot in slots] == [SlotState.DONE] * 2
    assert slots[1].wait(0)["y"].tolist() == [7, 7]


def test_a_waiter_on_another_thread_gets_its_result_during_close(engine, lane):
    slot = submit(lane, engine, 3.0)
    got = []
    waiter = threading.Thread(target=lambda: got.append(slot.wait(5)["y"].tolist()))
    waiter.start()
    engine.gate.set()
    lane.close()
    waiter.join(5)
    assert got == [[3, 3]]


def test_a_failure_that_is_no_engine_error_becomes_tile_failed_and_keeps_the_thread(engine, lane):
    engine.gate.set()
    engine.failure = MemoryError("no more")
    with pytest.raises(TileFailed, match=r"MemoryError: no more") as caught:
        submit(lane, engine).wait(5)
    assert isinstance(caught.value.__cause__, MemoryError)
    engine.failure = None
    assert submit(lane, engine, 1.0).wait(5)["y"].tolist() == [1, 1]


def test_busy_time_is_that_of_the_tile_alone_also_of_one_that_failed(engine, lane):
    engine.failure = MemoryError("no more")
    slots = [submit(lane, engine) for _ in range(2)]
    assert engine.entered.acquire(timeout=5)
    time.sleep(0.05)
    engine.gate.set()
    for slot in slots:
        with pytest.raises(TileFailed):
            slot.wait(5)
    assert slots[0].busy_s >= 0.05 > slots[1].busy_s > 0


def test_a_fatal_error_reaches_every_later_call_and_every_waiting_tile(engine, lane):
    engine.failure = EngineFatal("error 700")
    slots = [submit(lane, engine) for _ in range(2)]
    filling = lane.acquire(engine, {"x": (1,)})
    engine.gate.set()
    calls = [
        lambda: slots[0].wait(5),
        lambda: slots[1].wait(5),
        lambda: lane.acquire(engine, {"x": (1,)}),
        lambda: lane.submit(filling),
    ]
    for call in calls:
        with pytest.raises(EngineFatal, match="error 700"):
            call()
    assert engine.entered.acquire(timeout=5)
    assert not engine.entered.acquire(blocking=False)
    filling.release()


def test_an_engine_closed_under_a_waiting_tile_is_the_programs_mistake_not_the_tiles(engine, lane):
    first, second = submit(lane, engine), submit(lane, engine)
    assert engine.entered.acquire(timeout=5)
    engine.close()
    engine.gate.set()
    first.wait(5)
    with pytest.raises(SlotMisuse, match="closed while"):
        second.wait(5)


def test_run_that_is_interrupted_gives_its_slot_back(engine, lane, monkeypatch):
    class Interrupt(BaseException):
        pass

    real_submit = lane.submit

    def interrupted(slot):
        real_submit(slot)
        assert engine.entered.acquire(timeout=5)
        engine.gate.set()
        raise Interrupt

    monkeypatch.setattr(lane, "submit", interrupted)
    with pytest.raises(Interrupt):
        lane.run(engine, {"x": np.zeros(2, np.float32)})
    monkeypatch.undo()
    slots = [lane.acquire(engine, {"x": (1,)}) for _ in range(3)]
    assert None not in slots


def test_staging_memory_is_reused_aligned_and_not_cleared(engine, lane):
    engine.gate.set()
    addresses = set()
    for _ in range(3):
        slot = submit(lane, engine, 42.0)
        slot.wait(5)
        slot.release()
        slot = lane.acquire(engine, {"x": (2,)})
        view = slot.inputs["x"]
        assert view.tolist() == [42, 42]
        addresses.add(view.ctypes.data)
        slot.release()
    assert len(addresses) == 1
    assert addresses.pop() % 64 == 0
