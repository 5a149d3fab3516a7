"""Estimate: what a plan would need, from the graph that it would be built from."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tensorq.signature import Signature
from tensorq_engines.base.errors import ModelLoadFailed
from tensorq_engines.base.footprint import Footprint
from tensorq_engines.base.profile import Profile
from tensorq_engines.onnx_model.fold import infer_fixed
from tensorq_engines.onnx_model.tensors import element_bytes
from tensorq_engines.sizing.kernels import DYNAMIC_LEVEL, Step, fuse
from tensorq_engines.sizing.liveness import peak_bytes
from tensorq_engines.sizing.maxima import largest
from tensorq_engines.tensorrt.layout import Layout, Tensor

Shapes = Mapping[str, tuple[int, ...]]

ALIGNMENT = 512
"""TensorRT starts each activation at a multiple of this many bytes."""

HALF_CHANNELS = 8
"""Kernels for 16-bit images take channels in multiples of this: three become eight."""

GRANULE = 2 << 20
"""The driver gives memory in steps of this many bytes."""

_VIEWS = frozenset({"Dropout", "Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"})


@dataclass(frozen=True, slots=True)
class Build:
    """What of a build decides the memory of its plan.

    Attributes:
        precision: what model.toml asks for. int8 counts as fp16: an upper bound.
        optimization_level: None for TensorRT's own, 3.
    """

    precision: str = "fp32"
    optimization_level: int | None = None

    @property
    def half(self) -> bool:
        """Whether 32-bit floats are 16 bits wide on the device."""
        return self.precision != "fp32"

    @property
    def chains(self) -> bool:
        """Whether kernels are compiled for chains of pointwise nodes."""
        return self.optimization_level is None or self.optimization_level >= DYNAMIC_LEVEL


@dataclass(frozen=True, slots=True)
class Tile:
    """What one tile needs on the device.

    Attributes:
        arena_bytes: activations alive at once.
        io_bytes: inputs and outputs.
        unknown: tensors of no known shape, such as all that follow an operator of a plugin; they count as
            nothing, so where there are any, the other numbers are lower bounds.
    """

    arena_bytes: int
    io_bytes: int
    unknown: int = 0


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a plan needs, and `Tile.unknown`."""

    footprint: Footprint
    unknown: int


def estimate_plan(
    model: Any, signature: Signature, profiles: Sequence[Profile], build: Build, context_bytes: int
) -> Estimate:
    """Returns what a plan that is not there would need.

    Args:
        model: the graph, an ``onnx.ModelProto`` with its wire inputs.
        signature: the model's.
        profiles: those of the plan.
        build: how it is built.
        context_bytes: what a context keeps for itself, which no graph tells.

    Raises:
        ModelLoadFailed: see `estimate_tile`.
    """
    tiles = [estimate_tile(model, signature, largest(signature, profile), build) for profile in profiles]
    io_bytes = max(tile.io_bytes for tile in tiles)
    footprint = Footprint(
        weights_bytes=weights_bytes(model, build),
        arena_bytes=max(tile.arena_bytes for tile in tiles),
        io_bytes=io_bytes,
        pinned_bytes=io_bytes,
        context_bytes=context_bytes * len(profiles),
    )
    return Estimate(footprint, max(tile.unknown for tile in tiles))


def weights_bytes(model: Any, build: Build) -> int:
    """Returns bytes of parameters on the device, in the steps in which the driver gives memory."""
    constants = (
        attribute.t
        for node in model.graph.node
        if node.op_type == "Constant"
        for attribute in node.attribute
        if attribute.HasField("t")
    )
    total: int = sum(
        math.prod(item.dims) * _width(item.data_type, build)
        for item in (*model.graph.initializer, *constants)
    )
    return -(-total // GRANULE) * GRANULE


def estimate_tile(model: Any, signature: Signature, shapes: Shapes, build: Build) -> Tile:
    """Returns what a tile needs on the device.

    Nodes are fused as `fuse` says and run in the graph's order. 16-bit kernels work on copies of 32-bit
    inputs and outputs. Scratch memory of kernels is not known, and neither is how TensorRT orders nodes
    and places tensors: `accuracy` tells how far off this was.

    Raises:
        ModelLoadFailed: onnx cannot infer over this model, which may run all the same.
    """
    try:
        graph = infer_fixed(model, shapes).graph
    except Exception as exc:
        raise ModelLoadFailed(
            f"onnx cannot infer the shapes of the model's tensors: {exc}; simplify the model, or build its "
            "plan, which is measured"
        ) from exc
    lengths = {info.name: _lengths(info) for info in _tensors(graph)}
    carried = (*signature.inputs, *signature.outputs)
    io_bytes = Layout.of(Tensor(spec.name, spec.dtype, lengths.get(spec.name, ())) for spec in carried).size
    sizes = {info.name: _aligned(_size(info, build)) for info in _tensors(graph)}
    floats = {info.name for info in _tensors(graph) if _is_float32(info)}
    known = {info.name for info in _tensors(graph) if info.type.tensor_type.HasField("shape")}
    nodes, outputs = _steps(graph, set(shapes), [spec.name for spec in signature.outputs])
    held = {name: root for name, root in outputs.items() if not (build.half and name in floats)}
    for root in held.values():
        # Written to where the job's output lies.
        sizes.pop(root, None)
    copied = [name for name in shapes if build.half and name in floats]
    kernels = fuse(nodes, set(outputs.values()), chains=build.chains)
    unknown = sum(name not in known for node in nodes for name in node.makes)
    return Tile(peak_bytes(kernels, sizes, copied), io_bytes, unknown)


def _steps(graph: Any, inputs: set[str], outputs: Sequence[str]) -> tuple[list[Step], dict[str, str]]:
    """Nodes that compute, without constants and views, and what each output is a view of."""
    constant = {item.name for item in graph.initializer}
    constant |= {info.name for info in graph.input if info.name not in inputs}
    same: dict[str, str] = {}
    steps = []
    for node in graph.node:
        reads = dict.fromkeys(same.get(name, name) for name in node.input if name and name not in constant)
        if not reads:
            constant.update(node.output)
        elif node.op_type in _VIEWS:
            same[node.output[0]] = next(iter(reads))
        else:
            steps.append(Step(node.op_type, tuple(reads), tuple(filter(None, node.output))))
    return steps, {name: same.get(name, name) for name in outputs}


def _tensors(graph: Any) -> tuple[Any, ...]:
    return (*graph.input, *graph.output, *graph.value_info)


def _size(info: Any, build: Build) -> int:
    tensor = info.type.tensor_type
    lengths = list(_lengths(info))
    width = _width(tensor.elem_type, build)
    if width == 2 and len(lengths) == 4:
        lengths[1] = -(-lengths[1] // HALF_CHANNELS) * HALF_CHANNELS
    return math.prod(lengths) * width


def _lengths(info: Any) -> tuple[int, ...]:
    return tuple(dim.dim_value if dim.dim_value > 0 else 1 for dim in info.type.tensor_type.shape.dim)


def _width(elem_type: int, build: Build) -> int:
    """Bytes of an element on the device: 16-bit floats where asked for, and 32-bit whole numbers."""
    from onnx import TensorProto

    if elem_type == TensorProto.FLOAT and build.half:
        return 2
    return min(element_bytes(elem_type), 4)


def _is_float32(info: Any) -> bool:
    from onnx import TensorProto

    return bool(info.type.tensor_type.elem_type == TensorProto.FLOAT)


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT
