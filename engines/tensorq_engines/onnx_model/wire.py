"""Wire inputs put into an ONNX graph: a cast and a normalisation before all else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from tensorq_engines.base.problem import Problem, suggest
from tensorq_engines.base.wire import Wire

WIRE_VERSION = 1
"""Raised whenever `add_wires` writes another graph for the same settings."""


def check_wires(model: Any, wires: Sequence[Wire], settings: str) -> list[Problem]:
    """Returns what in ``[inputs]`` of the file ``settings`` does not fit an ``onnx.ModelProto``."""
    weights = {weight.name for weight in model.graph.initializer}
    infos = {info.name: info for info in model.graph.input if info.name not in weights}
    return [problem for wire in wires for problem in _check(wire, infos, settings)]


def add_wires(model: Any, wires: Sequence[Wire]) -> None:
    """Changes an ``onnx.ModelProto`` that `check_wires` accepts so that it takes what is sent."""
    for wire in wires:
        _add(model.graph, wire)


def _check(wire: Wire, infos: dict[str, Any], settings: str) -> Iterator[Problem]:
    from onnx import TensorProto

    key = f"inputs.{wire.name}"
    if wire.name not in infos:
        yield Problem(settings, key, "the model has no such input", suggest(wire.name, infos))
        return
    tensor = infos[wire.name].type.tensor_type
    if tensor.elem_type not in (TensorProto.FLOAT, TensorProto.FLOAT16):
        kind = TensorProto.DataType.Name(tensor.elem_type).lower()
        got = f"the model takes {kind} there, expected float or float16 to normalise to"
        yield Problem(settings, f"{key}.wire", got, f"remove [{key}]: send {kind} as it is")
        return
    dims = tensor.shape.dim
    for word, values in (("scale", wire.scale), ("mean", wire.mean)):
        if len(values) == 1:
            continue
        length = dims[wire.axis].dim_value if wire.axis < len(dims) else 0
        if length != len(values):
            there = f"{length} long" if length else "free" if wire.axis < len(dims) else "not there"
            got = f"got {len(values)} values for axis {wire.axis}, which is {there}"
            yield Problem(settings, f"{key}.{word}", got, "give one value, or one a channel and the axis")


def _add(graph: Any, wire: Wire) -> None:
    from onnx import TensorProto, helper, numpy_helper

    info = next(info for info in graph.input if info.name == wire.name)
    tensor = info.type.tensor_type
    name = f"{wire.name}/wire"
    parts = {word: wire.spread(getattr(wire, word), len(tensor.shape.dim)) for word in ("mean", "scale")}
    graph.initializer.extend(numpy_helper.from_array(part, f"{name}/{word}") for word, part in parts.items())
    # float32 throughout, because float16 would round a mean such as 123.675.
    steps = [
        ("Cast", [wire.name], {"to": TensorProto.FLOAT}),
        ("Sub", [f"{name}/Cast", f"{name}/mean"], {}),
        ("Mul", [f"{name}/Sub", f"{name}/scale"], {}),
    ]
    if tensor.elem_type == TensorProto.FLOAT16:
        steps.append(("Cast", [f"{name}/Mul"], {"to": TensorProto.FLOAT16}))
    _rename_reads(graph, wire.name, f"{name}/out")
    for index, (kind, inputs, attributes) in enumerate(steps):
        output = f"{name}/out" if index == len(steps) - 1 else f"{name}/{kind}"
        node = helper.make_node(kind, inputs, [output], name=f"{name}/{index}", **attributes)
        graph.node.insert(index, node)
    tensor.elem_type = helper.np_dtype_to_tensor_dtype(np.dtype(wire.dtype))


def _rename_reads(graph: Any, old: str, new: str) -> None:
    for node in graph.node:
        for index, name in enumerate(node.input):
            if name == old:
                node.input[index] = new
        for attribute in node.attribute:
            for inner in (attribute.g, *attribute.graphs):
                _rename_reads(inner, old, new)
