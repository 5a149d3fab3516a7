"""Lane: a CUDA stream, its memory, and the tiles of any number of engines in turn."""

from __future__ import annotations

import threading
from typing import ClassVar

from tensorq_engines.base.admission import Shapes
from tensorq_engines.base.engine import Engine
from tensorq_engines.base.errors import EngineError, LaneClosed, SlotMisuse
from tensorq_engines.base.lane import MIN_SLOTS, Lane
from tensorq_engines.base.memory import LaneMemory
from tensorq_engines.base.slot import Slot, SlotState
from tensorq_engines.tensorrt.context import Refused
from tensorq_engines.tensorrt.cuda.errors import CudaError
from tensorq_engines.tensorrt.cuda.status import expect_alive, fatal
from tensorq_engines.tensorrt.engine import TensorRtEngine
from tensorq_engines.tensorrt.lane_device import LaneDevice
from tensorq_engines.tensorrt.options import LaneOptions
from tensorq_engines.tensorrt.seat import Seat
from tensorq_engines.tensorrt.serial import SERIAL
from tensorq_engines.tensorrt.slot import TensorRtSlot, failed
from tensorq_engines.tensorrt.staging import Staging


class TensorRtLane(Lane):
    """Runs tiles in the order submitted on a stream of its own.

    Two locks: the turn is held by the one thread that touches contexts, graphs and memory (acquire, submit,
    close), the other for moments by any thread that changes a slot's state (wait, release). Whoever needs
    both takes the turn first.
    """

    kind: ClassVar[str] = "tensorrt"

    def __init__(self, slot_count: int = MIN_SLOTS, options: LaneOptions | None = None) -> None:
        super().__init__(slot_count)
        self.options = LaneOptions() if options is None else options
        self._lock = threading.Lock()
        self._turn = threading.RLock()
        self._stagings = [Staging(index) for index in range(slot_count)]
        self._free = list(reversed(self._stagings))
        self._device: LaneDevice | None = None
        self._seats: dict[Engine, Seat] = {}
        self._closed = False

    @property
    def memory(self) -> LaneMemory:
        """See `Lane.memory`."""
        device = self._device
        return LaneMemory(
            0 if device is None or device.activations is None else device.activations.size_bytes,
            0 if device is None else device.io.size_bytes,
            sum(staging.size_bytes for staging in self._stagings),
        )

    def acquire(self, engine: Engine, shapes: Shapes) -> Slot | None:
        """See `Lane.acquire`.

        Raises:
            TileFailed: there is too little memory for such a tile, or TensorRT takes no such context.
        """
        if not isinstance(engine, TensorRtEngine):
            raise SlotMisuse(
                f"model {engine.name!r} is of kind {engine.kind!r}, and this lane runs {self.kind!r}"
            )
        if not engine.loaded:
            raise SlotMisuse(f"model {engine.name!r} is not loaded: call load() before acquire()")
        seat = self._seats.get(engine)
        if seat is None or not seat.has_run(shapes):
            engine.check_shapes(shapes)
        with self._lock:
            self._expect_usable()
            if not self._free:
                return None
            staging = self._free.pop()
        try:
            with self._turn:
                return self._make_slot(self._work(), engine, shapes, staging)
        except BaseException:
            with self._lock:
                self._take_back(staging)
            raise

    def submit(self, slot: Slot) -> None:
        """See `Lane.submit`."""
        if not isinstance(slot, TensorRtSlot) or slot.staging not in self._stagings:
            raise SlotMisuse(f"slot of model {slot.model!r} is another lane's: submit it there")
        with self._turn:
            with self._lock:
                self._expect_usable()
                slot._expect("submit", SlotState.FILLING)
                spare = list(self._free)
            device = self._work()
            if self.options.serialize:
                with SERIAL.turn(device.stream, slot.event):
                    self._start(device, slot, spare)
            else:
                self._start(device, slot, spare)

    def close(self) -> None:
        """See `Lane.close`; contexts and graphs go here, in order, and engines stay loaded."""
        with self._lock:
            already, self._closed = self._closed, True
        if already or fatal() is not None:
            return
        with self._turn:
            for seat in list(self._seats.values()):
                seat.leave()
            if self._device is not None:
                self._device.use()
                self._device.stream.synchronize()
                SERIAL.forget(self._stagings)
                self._device.close()
            with self._lock:
                free, self._free = self._free, []
            for staging in free:
                staging.close()

    def _make_slot(
        self, device: LaneDevice, engine: TensorRtEngine, shapes: Shapes, staging: Staging
    ) -> TensorRtSlot:
        try:
            seat = self._seats.get(engine)
            if seat is None:
                seat = Seat(engine.model, device, self.options, self._dismiss)
                self._seats[engine] = seat
                engine.attach(seat)
            form = seat.form(shapes)
            device.reserve(form, staging)
        except (Refused, CudaError) as exc:
            raise failed(engine.name, shapes, exc) from exc
        return TensorRtSlot(seat, form, staging, self._lock, self._take_back)

    def _start(self, device: LaneDevice, slot: TensorRtSlot, spare: list[Staging]) -> None:
        try:
            slot.start(spare)
        except Refused as exc:
            slot.fail(_worst(device, failed(slot.model, slot.form.shapes, exc)))
        except CudaError as exc:
            slot.fail(failed(slot.model, slot.form.shapes, exc))
        except EngineError as exc:
            slot.fail(exc)
        except BaseException as exc:  # an interrupt: what was queued is nobody's result
            slot.fail(failed(slot.model, slot.form.shapes, exc))
            raise
        finally:
            self._mark(device, slot)

    def _mark(self, device: LaneDevice, slot: TensorRtSlot) -> None:
        """Ends a submit, also one that failed: whatever was queued may still read the slot's memory."""
        try:
            if fatal() is None:
                slot.event.record(device.stream)
        except EngineError as exc:
            slot.fail(exc)
        with self._lock:
            slot._state = SlotState.SUBMITTED

    def _dismiss(self, seat: Seat) -> None:
        """Closes a seat when its engine or the lane closes."""
        if seat.closed:
            return
        if fatal() is not None:
            seat.abandon()
            return
        with self._turn:
            device = self._work()
            device.stream.synchronize()
            seat.close()
            self._seats = {engine: other for engine, other in self._seats.items() if other is not seat}
            device.trim(
                max((other.activation_bytes for other in self._seats.values()), default=0),
                max((other.io_bytes for other in self._seats.values()), default=0),
            )

    def _work(self) -> LaneDevice:
        """Returns the lane's device, in use on this thread, which has the lane's turn."""
        if self._device is None:
            self._device = LaneDevice(self.options, self._drop_graphs)
        self._device.use()
        return self._device

    def _drop_graphs(self, slot: int | None) -> None:
        for seat in self._seats.values():
            seat.graphs.drop(slot)

    def _expect_usable(self) -> None:
        expect_alive()
        if self._closed:
            raise LaneClosed(f"this {self.kind} lane was closed: it takes no more tiles; use another lane")

    def _take_back(self, staging: Staging) -> None:
        if not self._closed:
            self._free.append(staging)
        elif fatal() is None and self._device is not None:
            self._device.use()
            staging.close()


def _worst(device: LaneDevice, failure: EngineError) -> EngineError:
    """Returns the error that sticks, where TensorRT's refusal came of one; else ``failure``."""
    try:
        device.stream.expect_healthy()
    except EngineError as exc:
        return exc
    return failure
