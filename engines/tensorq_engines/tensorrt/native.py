"""Native: a deserialized engine, and what it says of itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tensorq.signature import Shape
from tensorq_engines.base.errors import ModelLoadFailed
from tensorq_engines.base.profile import InputRange, Profile
from tensorq_engines.tensorrt.cuda.memory import free_and_total
from tensorq_engines.tensorrt.flavour import Flavour
from tensorq_engines.tensorrt.process import CHANGES, keep_for_good


@dataclass(frozen=True, slots=True)
class Port:
    """An input or output of an engine.

    Attributes:
        name: its name.
        dtype: numpy's name of the engine's dtype.
        shape: ints where fixed, ``?`` where free.
    """

    name: str
    dtype: str
    shape: Shape


REMEDIES = {
    "incompatible device": "it was built for another GPU: build it on this one",
    "Version tag does not match": "it was built by another version of TensorRT: build it with this one",
    "expecting library version": "it was built by another version of TensorRT: build it with this one",
    "not compatible with this version": "it was built by another version of TensorRT: build it with this one",
    "Magic tag does not match": "it is not a plan of this TensorRT: build it with this one",
}


class NativeEngine:
    """An ``ICudaEngine``.

    Attributes:
        flavour: what made it.
        inputs: in the engine's order.
        outputs: in the engine's order.
        profiles: at least one; without ranges where all shapes are fixed.
        taken_bytes: device memory that went while it was deserialized, by the driver's account; 0 or less
            where it fitted into what the driver had set aside, or another process gave memory back.
    """

    def __init__(self, flavour: Flavour, handle: Any, taken_bytes: int = 0) -> None:
        """Reads what the engine says.

        Args:
            flavour: what made it.
            handle: the ``ICudaEngine``; owned from here on.
            taken_bytes: see the attribute.

        Raises:
            ModelLoadFailed: it has a tensor that jobs cannot carry.
        """
        self.flavour = flavour
        self.handle = handle
        self.taken_bytes = taken_bytes
        names = [handle.get_tensor_name(index) for index in range(handle.num_io_tensors)]
        self.inputs = tuple(self._port(name) for name in names if flavour.is_input(handle, name))
        self.outputs = tuple(self._port(name) for name in names if not flavour.is_input(handle, name))
        self.profiles = tuple(self._profile(index) for index in range(handle.num_optimization_profiles))

    def activation_bytes(self, profile: int) -> int:
        """Returns the device memory that a context needs for a profile."""
        return self.flavour.activation_bytes(self.handle, profile)

    def close(self) -> None:
        """Destroys the engine, whose contexts must be gone; idempotent."""
        with CHANGES:
            self.handle = None

    def abandon(self) -> None:
        """Keeps the engine undestroyed for good, after an error that destroying it would not survive."""
        if self.handle is not None:
            keep_for_good(self.handle)
            self.handle = None

    def _port(self, name: str) -> Port:
        dtype = self.handle.get_tensor_dtype(name)
        carried = self.flavour.dtype_name(dtype)
        if carried is None:
            raise ModelLoadFailed(
                f"tensor {name!r} has dtype {dtype}, expected one that numpy has; "
                "cast it to float32 or float16 inside the model"
            )
        if self.flavour.is_on_host(self.handle, name):
            raise ModelLoadFailed(
                f"tensor {name!r} holds a shape, which TensorRT keeps in host memory, expected values in "
                "device memory; make it a constant of the model"
            )
        shape = tuple(length if length >= 0 else "?" for length in self.handle.get_tensor_shape(name))
        return Port(name, carried, shape)

    def _profile(self, index: int) -> Profile:
        ranges = []
        for port in self.inputs:
            if any(isinstance(axis, str) for axis in port.shape):
                low, opt, high = self.handle.get_tensor_profile_shape(port.name, index)
                ranges.append(InputRange(port.name, tuple(low), tuple(opt), tuple(high)))
        return Profile(tuple(ranges))


def deserialize(flavour: Flavour, data: bytes, what: str) -> NativeEngine:
    """Makes an engine of a plan's bytes. Loads are serial.

    Args:
        flavour: the installed TensorRT.
        data: the plan.
        what: the model and its file, for messages.

    Raises:
        ModelLoadFailed: in TensorRT's words, with what to do.
        CudaMissing: there is no usable GPU.
    """
    runtime = flavour.runtime()
    with CHANGES, flavour.log.listen() as heard:
        free = free_and_total()[0]
        # bytes, because TensorRT reads the buffer without the GIL.
        handle = runtime.deserialize_cuda_engine(bytes(data))
        taken = free - free_and_total()[0]
    if handle is None:
        words = str(heard)
        advice = next((text for sign, text in REMEDIES.items() if sign in words), "build it anew")
        raise ModelLoadFailed(
            f"{what}: {flavour.name} {flavour.version_text} cannot load it: {words}; {advice}"
        )
    with naming(what):
        return NativeEngine(flavour, handle, taken)


@contextmanager
def naming(what: str) -> Iterator[None]:
    """Puts the model and its file before the message of a `ModelLoadFailed`."""
    try:
        yield
    except ModelLoadFailed as exc:
        raise ModelLoadFailed(f"{what}: {exc}") from exc
