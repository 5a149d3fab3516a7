"""Fold: the shape arithmetic of a graph, done, so that inference sees the shapes that it makes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from tensorq_engines.onnx_model.inference import KEPT_ELEMENTS, elements, infer

_ARITHMETIC = """
    Abs Add And Cast Ceil Concat ConstantOfShape Div Equal Expand Floor Gather Greater Identity Less Max Min
    Mod Mul Neg Not Or Range ReduceMax ReduceMin ReduceProd ReduceSum Reshape Round Shape Size Slice Sqrt
    Squeeze Sub Transpose Unsqueeze Where
"""
FOLDED = frozenset(_ARITHMETIC.split())
"""What exporters compute shapes with; all deterministic."""

PASSES = 32


def infer_fixed(model: Any, input_shapes: Mapping[str, tuple[int, ...]]) -> Any:
    """Returns a copy of an ``onnx.ModelProto`` with the types that inputs of fixed shapes lead to.

    onnx infers no shape from a ``Reshape`` by numbers that went through a ``Cast``, as PaddlePaddle and
    PyTorch write them. Each pass here computes what is constant by now, which becomes an initializer
    where it is small, and infers again.

    Args:
        model: left as it is.
        input_shapes: the shape of each input.

    Raises:
        Exception: onnx cannot infer over this model.
    """
    from onnx import numpy_helper, shape_inference

    inferred = infer(model, input_shapes)
    for _ in range(PASSES):
        found = _constants(inferred)
        if not found:
            break
        nodes = [node for node in inferred.graph.node if not any(name in found for name in node.output)]
        del inferred.graph.node[:], inferred.graph.value_info[:]
        inferred.graph.node.extend(nodes)
        inferred.graph.initializer.extend(numpy_helper.from_array(found[name], name) for name in found)
        inferred = shape_inference.infer_shapes(inferred, data_prop=True)
    return inferred


def _constants(model: Any) -> dict[str, np.ndarray]:
    """Values of nodes' outputs that follow from constants and from known shapes."""
    from onnx import numpy_helper

    opsets = {item.domain: item.version for item in model.opset_import}
    shapes = _shapes(model.graph)
    known = {item.name: numpy_helper.to_array(item) for item in model.graph.initializer}
    outputs = {info.name for info in model.graph.output}
    found = {}
    for node in model.graph.node:
        value: np.ndarray | None = None
        if node.op_type == "Constant" and not node.domain:
            value = _value(node)
        elif node.op_type == "Shape" and not node.attribute and node.input[0] in shapes:
            value = np.array(shapes[node.input[0]], np.int64)
        elif node.op_type in FOLDED and not node.domain and node.input:
            given = {name: known[name] for name in node.input if name in known}
            if all(name in given for name in node.input if name) and _count(node, given) <= KEPT_ELEMENTS:
                value = _run(node, given, opsets)
        if value is None or value.size > KEPT_ELEMENTS or node.output[0] in outputs:
            continue
        known[node.output[0]] = value
        found[node.output[0]] = value
    return found


def _count(node: Any, given: Mapping[str, np.ndarray]) -> int:
    """Returns the elements that a node makes of its values alone, such as an attention mask, else 0."""
    values = [given[name] for name in node.input if name]
    try:
        if node.op_type in ("ConstantOfShape", "Expand"):
            return math.prod(map(int, values[-1].reshape(-1)))
        if node.op_type == "Range":
            start, limit, step = (float(value.item()) for value in values)
            return math.ceil((limit - start) / step)
    except (ArithmeticError, LookupError, ValueError):  # values that the operator does not take either
        return 0
    return 0


def _run(node: Any, given: dict[str, np.ndarray], opsets: dict[str, int]) -> np.ndarray | None:
    from onnx.reference import ReferenceEvaluator

    try:
        (value,) = ReferenceEvaluator(node, opsets=opsets).run(None, given)
    except Exception:  # what the reference cannot compute stays unknown, as it was before
        return None
    return np.asarray(value)


def _value(node: Any) -> np.ndarray | None:
    from onnx import TensorProto, numpy_helper

    for attribute in node.attribute:
        if not attribute.HasField("t") or elements(attribute.t.dims) > KEPT_ELEMENTS:
            continue
        # onnx would look for the file of an external one in the working directory.
        if attribute.t.data_location != TensorProto.EXTERNAL:
            return np.asarray(numpy_helper.to_array(attribute.t))
    return None


def _shapes(graph: Any) -> dict[str, list[int]]:
    shapes = {}
    for info in (*graph.input, *graph.value_info):
        tensor = info.type.tensor_type
        if tensor.HasField("shape") and all(dim.HasField("dim_value") for dim in tensor.shape.dim):
            shapes[info.name] = [dim.dim_value for dim in tensor.shape.dim]
    return shapes
