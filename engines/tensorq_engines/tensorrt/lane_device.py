"""Lane device: the stream and the memory of one lane, and what must give way when memory moves."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar
from weakref import WeakSet

from tensorq_engines.tensorrt.arena import Arena, GrowingArena, MovingArena
from tensorq_engines.tensorrt.cuda.device import Device
from tensorq_engines.tensorrt.cuda.stream import Stream
from tensorq_engines.tensorrt.form import Form
from tensorq_engines.tensorrt.layout import aligned
from tensorq_engines.tensorrt.options import LaneOptions
from tensorq_engines.tensorrt.process import CHANGES
from tensorq_engines.tensorrt.staging import Staging
from tensorq_engines.tensorrt.waiting import spins

DropGraphs = Callable[[int | None], None]


class LaneDevice:
    """Made with a lane's first tile. Only the thread that has the lane's turn calls it.

    One set of device inputs and outputs serves all slots: a tile is copy in, run and copy out on one stream,
    so the next tile's copy in comes after the last one's copy out.

    Attributes:
        stream: all tiles of the lane, in order.
        activations: what contexts share; None where each has its own.
        io: device inputs, then device outputs, of one tile.
    """

    _open: ClassVar[WeakSet[LaneDevice]] = WeakSet()

    def __init__(self, options: LaneOptions, drop_graphs: DropGraphs) -> None:
        """Makes the stream; memory comes when it is reserved.

        Args:
            options: of the lane.
            drop_graphs: destroys the lane's graphs: those of one slot, or all for None.

        Raises:
            CudaMissing: there is no usable GPU.
        """
        self._device = Device.require()
        self._device.use()
        self._drop_graphs = drop_graphs
        self._open.add(self)
        self._spin = spins(options.wait, len(self._open))
        growing = options.arena in ("auto", "private") and self._device.has_address_ranges
        self._growing = growing or options.arena == "growing"
        self.stream = Stream()
        self.activations = None if options.arena == "private" else self._arena()
        self.io = self._arena()

    def use(self) -> None:
        """Makes the device current on the calling thread."""
        self._device.use()

    def reserve(self, form: Form, staging: Staging) -> None:
        """Makes sure of device and page-locked memory for a form's tiles in a slot that is not running.

        Raises:
            CudaOutOfMemory: the device or the host has too little.
            TileFailed: the process's limit of page-locked memory is reached.
        """
        inputs, outputs = form.room
        self._grow(self.io, aligned(inputs) + outputs)
        staging.make_events(spin=self._spin)
        if inputs > staging.inputs.capacity or outputs > staging.outputs.capacity:
            with CHANGES:
                self._drop_graphs(staging.index)
                staging.inputs.reserve(inputs)
                staging.outputs.reserve(outputs)

    def give_memory(self, form: Form) -> None:
        """Tells a form's context where its activations go, and sees to it that the form's memory is there.

        It was reserved once, and a larger tile that did not fit may have cost it.

        Raises:
            CudaOutOfMemory: the device has too little.
        """
        if self.activations is not None:
            self._grow(self.activations, form.context.activation_bytes)
            form.context.give_memory(self.activations.address, form.context.activation_bytes)
        self._grow(self.io, aligned(form.inputs.size) + form.outputs.size)

    def reserve_outputs(self, staging: Staging, size: int) -> None:
        """Makes sure of page-locked memory for outputs whose size only a run tells."""
        if size > staging.outputs.capacity:
            with CHANGES:
                self._drop_graphs(staging.index)
                staging.outputs.reserve(size)

    def trim(self, activation_bytes: int, io_bytes: int) -> None:
        """Gives back what lies above these sizes; nothing may be running."""
        with CHANGES:
            if self.activations is not None:
                self.activations.trim(activation_bytes)
            self.io.trim(io_bytes)

    def outputs_address(self, form: Form) -> int:
        """Returns where the outputs of a form's tiles begin on the device."""
        return self.io.address + aligned(form.inputs.size)

    def close(self) -> None:
        """Gives the memory and the stream back; nothing may be running. Idempotent."""
        self._open.discard(self)
        self._device.use()
        with CHANGES:
            if self.activations is not None:
                self.activations.close()
            self.io.close()
        self.stream.close()

    def _grow(self, arena: Arena, size: int) -> None:
        if arena.size_bytes < size:
            with CHANGES:
                arena.reserve(size)

    def _arena(self) -> Arena:
        return GrowingArena(self._device) if self._growing else MovingArena(self._before_move)

    def _before_move(self) -> None:
        self.stream.synchronize()
        self._drop_graphs(None)
