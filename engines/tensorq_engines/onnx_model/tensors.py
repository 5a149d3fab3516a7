"""Tensors of an ONNX graph as `TensorSpec`."""

from __future__ import annotations

from typing import Any

import numpy as np

from tensorq.signature import Shape, TensorSpec

UNKNOWN_RANK: Shape = ("...",)
"""Shape of an output of which the model tells nothing at all."""

NATIVE_KINDS = "biufc"


class TensorRefused(Exception):
    """A graph input or output that tensorq cannot carry; ``args`` are a message and a remedy."""


def read_tensor(info: Any) -> TensorSpec:
    """Returns the spec of an ``onnx.ValueInfoProto``.

    Raises:
        TensorRefused: it is not a tensor, or of a dtype that numpy does not have.
    """
    if info.type.WhichOneof("value") != "tensor_type":
        what = (info.type.WhichOneof("value") or "value of unknown type").removesuffix("_type")
        raise TensorRefused(f"it is a {what}, expected a tensor", "export the model with tensors only")
    tensor = info.type.tensor_type
    shape = read_shape(tensor.shape) if tensor.HasField("shape") else UNKNOWN_RANK
    return TensorSpec(info.name, read_dtype(tensor.elem_type), shape)


def read_dtype(elem_type: int) -> str:
    """Returns the numpy name of an ONNX element type.

    Raises:
        TensorRefused: numpy has no such dtype.
    """
    from onnx import TensorProto, helper

    if elem_type not in TensorProto.DataType.values():
        raise TensorRefused(
            f"its dtype has the number {elem_type}, which this onnx does not know",
            "install a newer onnx, or cast it to float32 or int64 inside the model",
        )
    name = TensorProto.DataType.Name(elem_type).lower()
    try:
        dtype: np.dtype[Any] = helper.tensor_dtype_to_np_dtype(elem_type)
    except KeyError:
        raise TensorRefused(f"its dtype is {name}", "declare its dtype in the model") from None
    # onnx maps types that numpy lacks (bfloat16, float8) to extension dtypes, which no payload can carry.
    if dtype.kind not in NATIVE_KINDS or dtype.isbuiltin != 1:
        raise TensorRefused(
            f"its dtype is {name}, expected one that numpy has",
            "cast it to float32 or int64 inside the model",
        )
    return dtype.name


def element_bytes(elem_type: int) -> int:
    """Returns the bytes of one element of an ONNX type; 0 for text and for types that onnx does not know."""
    from onnx import TensorProto, helper

    if elem_type == TensorProto.STRING:
        return 0
    try:
        return int(helper.tensor_dtype_to_np_dtype(elem_type).itemsize)
    except KeyError:
        return 0


def read_shape(shape: Any) -> Shape:
    """Returns the shape of an ``onnx.TensorShapeProto``; a free axis without a symbol is ``?``."""
    return tuple(
        # Some exporters write free axes as -1.
        dim.dim_value
        if dim.WhichOneof("value") == "dim_value" and dim.dim_value >= 0
        else dim.dim_param or "?"
        for dim in shape.dim
    )
