"""Shape inference over a graph without its weights."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

KEPT_ELEMENTS = 1024
"""Initializers up to this size stay: they may be the shapes and axes that inference reads."""


def infer(model: Any, input_shapes: Mapping[str, tuple[int, ...]] | None = None) -> Any:
    """Returns a copy of an ``onnx.ModelProto`` with inferred types, its large weights left out.

    Args:
        model: left as it is.
        input_shapes: shapes to give the inputs, and the free axes of outputs follow; None leaves both as
            declared.

    Raises:
        Exception: onnx cannot infer over this model.
    """
    import onnx
    from onnx import helper, shape_inference

    slim = onnx.ModelProto()
    slim.ir_version = model.ir_version
    slim.opset_import.extend(model.opset_import)
    slim.functions.extend(model.functions)
    slim.graph.name = model.graph.name
    slim.graph.node.extend(in_order(model.graph.node))
    slim.graph.input.extend(model.graph.input)
    slim.graph.output.extend(model.graph.output)
    declared = {info.name for info in model.graph.input}
    for weight in model.graph.initializer:
        if elements(weight.dims) <= KEPT_ELEMENTS and weight.data_location != onnx.TensorProto.EXTERNAL:
            slim.graph.initializer.append(weight)
        elif weight.name not in declared:
            info = helper.make_tensor_value_info(weight.name, weight.data_type, list(weight.dims))
            slim.graph.input.append(info)
    if input_shapes is not None:
        for info in slim.graph.input:
            if info.name in input_shapes:
                dims = input_shapes[info.name]
                info.CopyFrom(helper.make_tensor_value_info(info.name, info.type.tensor_type.elem_type, dims))
        for info in slim.graph.output:
            for dim in info.type.tensor_type.shape.dim:
                if dim.dim_param or dim.dim_value < 0:
                    dim.Clear()
    return shape_inference.infer_shapes(slim, data_prop=True)


def in_order(nodes: Iterable[Any]) -> list[Any]:
    """Returns nodes so that each comes after those whose outputs it reads, else in the order given.

    ONNX asks for it, but ONNX Runtime's converter to float16 appends its casts at the end, and inference
    knows nothing of what follows such a cast.
    """
    waiting = list(nodes)
    unmade = {name for node in waiting for name in node.output if name}
    found: list[Any] = []
    while waiting:
        later = []
        for node in waiting:
            if unmade.isdisjoint(node.input):
                found.append(node)
                unmade.difference_update(node.output)
            else:
                later.append(node)
        if len(later) == len(waiting):  # a cycle, which nothing puts in order
            return found + later
        waiting = later
    return found


def elements(dims: Any) -> int:
    """Returns the number of elements of a shape; an unknown axis counts as 1."""
    total = 1
    for length in dims:
        total *= length if isinstance(length, int) else 1
    return total
