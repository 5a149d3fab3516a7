"""Slot: one tile's way through a TensorRT lane."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

import numpy as np

from tensorq_engines.base.admission import Shapes, describe
from tensorq_engines.base.errors import EngineError, EngineFatal, SlotMisuse, SlotTimeout, TileFailed
from tensorq_engines.base.outputs import check_outputs
from tensorq_engines.base.slot import Slot, SlotState
from tensorq_engines.tensorrt.casts import cast_in, cast_out
from tensorq_engines.tensorrt.cuda.errors import CudaError
from tensorq_engines.tensorrt.cuda.status import expect_alive
from tensorq_engines.tensorrt.cuda.stream import Event
from tensorq_engines.tensorrt.form import Form
from tensorq_engines.tensorrt.seat import Seat
from tensorq_engines.tensorrt.staging import Staging
from tensorq_engines.tensorrt.views import TileViews


class TensorRtSlot(Slot):
    """A slot whose inputs and outputs are views over page-locked memory.

    An input whose dtype is not the engine's is filled in pageable memory and cast at submit.

    Attributes:
        seat: the engine on the lane.
        form: the tile's.
        staging: this slot's until it is released.
    """

    def __init__(
        self,
        seat: Seat,
        form: Form,
        staging: Staging,
        lock: threading.Lock,
        take_back: Callable[[Staging], None],
    ) -> None:
        self.seat = seat
        self.form = form
        self.staging = staging
        self._take_back = take_back
        self._views = TileViews.of(form, staging)
        inputs = dict(self._views.inputs)
        for spec in seat.model.cast_inputs:
            inputs[spec.name] = np.empty(form.shapes[spec.name], spec.dtype)
        super().__init__(seat.model.name, inputs, lock)
        self._layout = form.outputs
        self._outputs: Mapping[str, np.ndarray] | None = None
        self._failure: EngineError | None = None
        self._busy_s: float | None = None

    @property
    def state(self) -> SlotState:
        """See `Slot.state`; asks the device whether a submitted tile is done."""
        self._look()
        return self._state

    def release(self) -> None:
        """See `Slot.release`; a tile that is done need not have been waited for."""
        self._look()
        super().release()

    @property
    def event(self) -> Event:
        """Marks the end of the tile in the lane's stream."""
        assert self.staging.event is not None
        return self.staging.event

    def span_s(self, epoch: Event) -> tuple[float, float]:
        """Returns when the tile began and ended on the device, in seconds since ``epoch``; as `busy_s`.

        Args:
            epoch: an event with timing, recorded in any stream and done.

        Raises:
            SlotMisuse: the tile is not done, or the slot was released.
            TileFailed: it failed.
        """
        busy_s = self.busy_s
        if self._failure is not None:
            raise self._failure.with_traceback(None)
        assert self.staging.begin is not None
        begin_s = epoch.elapsed_s(self.staging.begin)
        return begin_s, begin_s + busy_s

    def start(self, spare: list[Staging]) -> None:
        """Queues the tile; called once, by the lane, with its turn.

        Args:
            spare: stagings that no tile owns.

        Raises:
            Refused: TensorRT returned False.
            EngineError: see `Seat.run`; or an input does not survive its cast.
        """
        if self.seat.closed:
            raise SlotMisuse(f"model {self.model!r} was closed while a tile of it waited to run")
        for spec in self.seat.model.cast_inputs:
            cast_in(spec.name, self._inputs[spec.name], self._views.inputs[spec.name])
        self._layout = self.seat.run(self.form, self.staging, spare)

    def fail(self, failure: EngineError) -> None:
        """Keeps what `wait` will raise; called by the lane."""
        self._failure = failure

    def _await(self, timeout_s: float | None) -> Mapping[str, np.ndarray]:
        if self._state is not SlotState.DONE:
            self._finish(timeout_s)
        if self._failure is not None:
            # The instance is raised from every wait: without this its traceback would grow each time.
            raise self._failure.with_traceback(None)
        if self._outputs is None:
            self._outputs = self._views.outputs or self._read()
        return self._outputs

    def _finish(self, timeout_s: float | None) -> None:
        try:
            expect_alive()
            if not self.event.wait(timeout_s):
                raise SlotTimeout(
                    f"model {self.model!r}: tile {describe(self.form.shapes)} is not done after "
                    f"{timeout_s} s; wait() again"
                )
        except EngineFatal as exc:
            self._failure = exc
        except CudaError as exc:
            self._failure = self._failure or failed(self.model, self.form.shapes, exc)
        with self._lock:
            if self._state is SlotState.SUBMITTED:
                self._state = SlotState.DONE

    def _read(self) -> Mapping[str, np.ndarray]:
        model, views = self.seat.model, self._layout.views(self.staging.outputs.array)
        try:
            outputs = check_outputs(
                model.signature,
                self.form.shapes,
                {spec.name: cast_out(views[spec.name], spec.dtype) for spec in model.signature.outputs},
            )
        except TileFailed as exc:
            self._failure = exc
            raise
        if not self.form.dynamic and not model.casts_outputs:
            self._views.outputs = outputs
        return outputs

    def _busy(self) -> float:
        if self._failure is not None:
            return 0.0
        if self._busy_s is None:
            self._busy_s = self.staging.busy_s
        return self._busy_s

    def _look(self) -> None:
        if self._state is SlotState.SUBMITTED:
            try:
                self._finish(0)
            except SlotTimeout:
                return

    def _free(self) -> None:
        self._outputs = None
        self._take_back(self.staging)


def failed(model: str, shapes: Shapes, cause: BaseException) -> TileFailed:
    """Returns a tile's failure in the words of its cause."""
    failure = TileFailed(
        f"model {model!r}: tile {describe(shapes)} failed in tensorrt: {type(cause).__name__}: {cause}"
    )
    failure.__cause__ = cause
    return failure
