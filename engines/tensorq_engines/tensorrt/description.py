"""Description: what a plan says of its model, from its sidecar or from the engine itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from tensorq.signature import Signature, TensorSpec
from tensorq_engines.base.errors import ModelLoadFailed
from tensorq_engines.base.footprint import Footprint
from tensorq_engines.base.ladder import derive_ladder
from tensorq_engines.base.profile import Profile
from tensorq_engines.onnx_model.batch_axis import derive_batch_axis, objection
from tensorq_engines.tensorrt.context import Context
from tensorq_engines.tensorrt.cuda.memory import free_and_total
from tensorq_engines.tensorrt.cuda.stream import Stream
from tensorq_engines.tensorrt.layout import Layout, Tensor, aligned
from tensorq_engines.tensorrt.native import NativeEngine, Port
from tensorq_engines.tensorrt.process import CHANGES
from tensorq_engines.tensorrt.sidecar import Sidecar

BatchAxis = Literal[0, "none"] | None


@dataclass(frozen=True, slots=True)
class Description:
    """What an engine tells of itself before and after it is loaded.

    Attributes:
        signature: what jobs carry.
        profiles: those that bind shapes; empty where all are fixed.
        ladder: batch sizes worth running, ascending.
        footprint: bytes of the largest tile over all profiles.
        context_bytes: what a context keeps for itself, one number a profile; empty where that is a guess.
    """

    signature: Signature
    profiles: tuple[Profile, ...]
    ladder: tuple[int, ...]
    footprint: Footprint
    context_bytes: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class ProfileSizes:
    """Bytes of device memory that one profile asks for, its activations apart.

    Attributes:
        io_bytes: inputs and outputs at the maximum.
        context_bytes: what a context keeps for itself, in the steps in which the driver gives memory.
    """

    io_bytes: int
    context_bytes: int


def describe_sidecar(sidecar: Sidecar, batch_axis: BatchAxis) -> Description:
    """Returns what a sidecar says; needs no GPU.

    Args:
        sidecar: the plan's.
        batch_axis: what model.toml says of it; None leaves it to the sidecar.

    Raises:
        ModelLoadFailed: the tensors have no such batch axis.
    """
    io_bytes = max(sidecar.io_bytes)
    footprint = Footprint(
        sidecar.weights_bytes,
        max(sidecar.activation_bytes),
        io_bytes,
        io_bytes,
        sum(sidecar.context_bytes),
    )
    return _describe(sidecar.signature, sidecar.profiles, footprint, batch_axis, sidecar.context_bytes)


def describe_estimate(signature: Signature, profiles: Sequence[Profile], footprint: Footprint) -> Description:
    """Returns what is known of a plan before it is built; its footprint is a guess from the graph."""
    guess = replace(footprint, pinned_bytes=footprint.io_bytes)
    return _describe(signature, profiles, guess, None)


def describe_native(engine: NativeEngine, plan_bytes: int, batch_axis: BatchAxis) -> Description:
    """Returns what a loaded engine says. Its weights are taken to be as large as the plan.

    Args:
        engine: the engine.
        plan_bytes: size of the plan.
        batch_axis: what model.toml says of it; None derives it.

    Raises:
        ModelLoadFailed: the tensors have no such batch axis.
        Refused: TensorRT does not take its own profiles.
    """
    inputs, outputs = _specs(engine.inputs), _specs(engine.outputs)
    signature = Signature(inputs, outputs, derive_batch_axis(inputs, outputs))
    indices = range(len(engine.profiles))
    sizes = [measure_profile(engine, index) for index in indices]
    io_bytes = max(one.io_bytes for one in sizes)
    arena_bytes = max(engine.activation_bytes(index) for index in indices)
    context_bytes = tuple(one.context_bytes for one in sizes)
    footprint = Footprint(plan_bytes, arena_bytes, io_bytes, io_bytes, sum(context_bytes))
    return _describe(signature, engine.profiles, footprint, batch_axis, context_bytes)


def _describe(
    signature: Signature,
    profiles: Sequence[Profile],
    footprint: Footprint,
    batch_axis: BatchAxis,
    context_bytes: tuple[int, ...] = (),
) -> Description:
    if batch_axis == 0 and (why := objection(signature.inputs, signature.outputs)):
        raise ModelLoadFailed(f"got batch_axis 0 in model.toml, but {why}; remove the key")
    if batch_axis is not None:
        signature = Signature(signature.inputs, signature.outputs, None if batch_axis == "none" else 0)
    binding = tuple(profile for profile in profiles if profile.ranges)
    return Description(signature, binding, derive_ladder(binding, signature), footprint, context_bytes)


def _specs(ports: Sequence[Port]) -> tuple[TensorSpec, ...]:
    return tuple(TensorSpec(port.name, port.dtype, port.shape) for port in ports)


def measure_profile(engine: NativeEngine, index: int) -> ProfileSizes:
    """Returns what a profile's tiles and its context need; see `ProfileSizes`."""
    largest = {item.name: item.max for item in engine.profiles[index]}
    shapes = {
        port.name: largest.get(port.name, tuple(int(length) for length in port.shape if length != "?"))
        for port in engine.inputs
    }
    inputs = Layout.of(Tensor(port.name, port.dtype, shapes[port.name]) for port in engine.inputs)
    end = aligned(inputs.size)
    stream = Stream()
    try:
        with CHANGES:
            free = free_and_total()[0]
            # It has no memory: shapes follow without any.
            context = Context(engine, index, stream, private=False)
            try:
                context.select()
                context.set_shapes(shapes)
                kept = max(free - free_and_total()[0], 0)
                end = _end(engine, context, end)
            finally:
                context.close()
    finally:
        stream.close()
    return ProfileSizes(end, kept)


def _end(engine: NativeEngine, context: Context, end: int) -> int:
    """Returns where the outputs end that lie behind ``end``, for the shapes that the context has."""
    for port in engine.outputs:
        shape = context.output_shape(port.name)
        size = (
            context.most_output_bytes(port.name)
            if shape is None
            else Tensor(port.name, port.dtype, shape).size
        )
        end = aligned(end) + size
    return end
