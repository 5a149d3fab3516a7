"""Context: an ``IExecutionContext`` of one lane and one profile. Every bool is checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tensorq_engines.base.admission import Shapes
from tensorq_engines.tensorrt.cuda.stream import Stream
from tensorq_engines.tensorrt.dynamic_outputs import DynamicOutput, make_dynamic_outputs
from tensorq_engines.tensorrt.native import NativeEngine
from tensorq_engines.tensorrt.process import keep_for_good


class Refused(Exception):
    """TensorRT said no, in its own words."""


class Context:
    """A context that only its lane's thread of the moment touches, under the lane's turn.

    Attributes:
        profile: the index of its profile, which never changes: graphs depend on it.
        activation_bytes: the device memory that it needs.
        settled: whether its last run had just the shapes, addresses and memory that are set now. TensorRT
            puts work off to the first run after a change, and does part of it in ways that a capture
            forbids: only a settled context can be captured.
    """

    settled = False

    def __init__(self, engine: NativeEngine, profile: int, stream: Stream, *, private: bool) -> None:
        """Creates the context; the caller holds the process's lock.

        Args:
            engine: outlives the context.
            profile: the index of the profile.
            stream: the lane's.
            private: the context has its own activation memory; else `give_memory` must come before `select`.

        Raises:
            Refused: TensorRT does not create it.
        """
        self.profile = profile
        self.activation_bytes = engine.activation_bytes(profile)
        self._flavour = engine.flavour
        self._stream = stream
        self._shapes: Shapes = {}
        self._addresses: dict[str, int] = {}
        self._memory: tuple[int, int] | None = None
        with self._flavour.log.listen() as heard:
            self._handle: Any = self._flavour.create_context(engine.handle, private=private)
        if self._handle is None:
            raise Refused(f"no context could be created: {heard}")

    def give_memory(self, address: int, size: int) -> None:
        """Tells where activations go; does nothing where that is known already."""
        if self._memory != (address, size):
            self.settled = False
            self._flavour.give_memory(self._handle, address, size)
            self._memory = (address, size)

    def select(self) -> None:
        """Makes the profile the context's own, once, after it has memory; the first is there by default.

        Raises:
            Refused: another context has the profile, and the engine was built without profile sharing.
        """
        if self._handle.active_optimization_profile == self.profile:
            return
        with self._flavour.log.listen() as heard:
            done = self._handle.set_optimization_profile_async(self.profile, self._stream.number)
        if not done:
            raise Refused(f"profile {self.profile} was refused: {heard}; is the plan built for sharing it?")
        self._stream.synchronize()

    def set_shapes(self, shapes: Shapes) -> None:
        """Sets the shape of every input.

        Raises:
            Refused: a shape lies outside the profile, or output shapes do not follow from them.
        """
        if shapes == self._shapes:
            return
        # Where one is refused, some are set and some are not.
        self._shapes = {}
        self.settled = False
        with self._flavour.log.listen() as heard:
            for name, shape in shapes.items():
                if not self._handle.set_input_shape(name, tuple(shape)):
                    raise Refused(f"shape {list(shape)} of input {name!r} was refused: {heard}")
            missing = self._handle.infer_shapes()
        if missing:
            raise Refused(f"shapes do not follow, {list(missing)} are missing: {heard}")
        self._shapes = dict(shapes)

    def output_shape(self, name: str) -> tuple[int, ...] | None:
        """Returns an output's shape for the shapes set; None where it depends on the data."""
        shape = tuple(int(length) for length in self._handle.get_tensor_shape(name))
        return None if any(length < 0 for length in shape) else shape

    def most_output_bytes(self, name: str) -> int:
        """Returns an upper bound of an output's bytes for the shapes set."""
        return int(self._handle.get_max_output_size(name))

    def allocate_outputs(self, names: tuple[str, ...]) -> dict[str, DynamicOutput]:
        """Gives outputs whose shapes depend on the data memory of their own, as much as each run asks for.

        Raises:
            Refused: TensorRT takes no allocator for one of them.
        """
        made = make_dynamic_outputs(self._flavour.module, names)
        for name, output in made.items():
            with self._flavour.log.listen() as heard:
                if not self._handle.set_output_allocator(name, output.native):
                    raise Refused(f"an allocator for output {name!r} was refused: {heard}")
        return made

    def set_addresses(self, addresses: Mapping[str, int]) -> None:
        """Sets device addresses of inputs and outputs.

        Raises:
            Refused: an address was refused.
        """
        for name, address in addresses.items():
            if self._addresses.get(name) == address:
                continue
            self.settled = False
            with self._flavour.log.listen() as heard:
                if not self._handle.set_tensor_address(name, address):
                    raise Refused(f"the address of {name!r} was refused: {heard}")
            self._addresses[name] = address

    def enqueue(self) -> None:
        """Queues one run in the lane's stream.

        Raises:
            Refused: TensorRT returned False; part of the run may have been queued.
        """
        self.settled = False
        with self._flavour.log.listen() as heard:
            done = self._handle.execute_async_v3(self._stream.number)
        if not done:
            raise Refused(str(heard))
        self.settled = True

    def close(self) -> None:
        """Destroys the context; nothing of it may be running and its graphs must be gone. Idempotent."""
        self._handle = None

    def abandon(self) -> None:
        """Keeps the context undestroyed for good, after an error that destroying it would not survive."""
        if self._handle is not None:
            keep_for_good(self._handle)
            self._handle = None
