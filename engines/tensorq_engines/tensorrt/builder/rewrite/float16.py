"""float16 for TensorRT that takes types from the graph alone, by ONNX Runtime's converter."""

from __future__ import annotations

from typing import Any


def to_float16(model: Any) -> Any:
    """Returns an ``onnx.ModelProto`` that computes in float16; its inputs and outputs keep their types.

    Raises:
        Exception: the converter cannot convert this model.
    """
    from onnxruntime.transformers.float16 import convert_float_to_float16

    return convert_float_to_float16(model, keep_io_types=True)


def converter_version() -> str:
    """Returns the name and version of what `to_float16` converts with."""
    import onnxruntime

    return f"onnxruntime.transformers.float16 {onnxruntime.__version__}"
