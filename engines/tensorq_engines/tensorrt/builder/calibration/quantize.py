"""Quantizing an ONNX graph with ONNX Runtime, in the form that TensorRT's parser takes."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any, Literal

from tensorq_engines.base.errors import BuildFailed
from tensorq_engines.tensorrt.builder.calibration.data import CalibrationData

Method = Literal["minmax", "entropy", "percentile"]

MIN_OPSET = 13
HEAVY = ["Conv", "ConvTranspose", "Gemm", "MatMul"]
OPTIONS = {
    "ActivationSymmetric": True,
    "WeightSymmetric": True,
    # Weights stay float32 with QuantizeLinear and DequantizeLinear: TensorRT 8.6 takes no int8 weights.
    "AddQDQPairToWeight": True,
    "DedicatedQDQPair": True,
    # An int32 bias behind DequantizeLinear is refused by TensorRT's parser.
    "QuantizeBias": False,
    "MatMulConstBOnly": True,
    # A pair between a convolution and its activation would keep TensorRT from fusing the two.
    "OpTypesToExcludeOutputQuantization": HEAVY,
}


def quantize(source: Path, target: Path, data: CalibrationData, method: Method) -> None:
    """Writes ``source``, its heavy nodes quantized to int8 by the ranges that ``data`` shows, to ``target``.

    Args:
        source: an ONNX file.
        target: in a scratch folder, where other files are written too.
        data: read to its end.
        method: how a range is chosen from what was seen.

    Raises:
        BuildFailed: the data is refused, or the model has nothing to quantize.
        Exception: ONNX Runtime cannot quantize this model.
    """
    from onnxruntime import quantization

    folded = target.with_name("folded.onnx")
    _fold(source, folded)
    methods = {
        "minmax": quantization.CalibrationMethod.MinMax,
        "entropy": quantization.CalibrationMethod.Entropy,
        "percentile": quantization.CalibrationMethod.Percentile,
    }
    with _quiet():
        quantization.quantize_static(
            str(folded),
            str(target),
            data,
            quant_format=quantization.QuantFormat.QDQ,
            per_channel=True,
            activation_type=quantization.QuantType.QInt8,
            weight_type=quantization.QuantType.QInt8,
            op_types_to_quantize=HEAVY,
            calibrate_method=methods[method],
            extra_options=dict(OPTIONS),
        )
    _check(target)


def _fold(source: Path, target: Path) -> None:
    """Writes the model in an opset that has scales per channel, with constants and batch norms folded in."""
    import onnx
    import onnxruntime
    from onnx import version_converter

    model = onnx.load(str(source))
    opset = next(item.version for item in model.opset_import if item.domain in ("", "ai.onnx"))
    if opset < MIN_OPSET:
        model = version_converter.convert_version(model, MIN_OPSET)
    upgraded = target.with_name("upgraded.onnx")
    onnx.save(model, str(upgraded))
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.optimized_model_filepath = str(target)
    onnxruntime.InferenceSession(str(upgraded), options, providers=["CPUExecutionProvider"])
    folded = onnx.load(str(target))
    used = {node.domain for node in folded.graph.node}
    kept = [item for item in folded.opset_import if item.domain in used | {""}]
    _name_kernels(folded)
    del folded.opset_import[:]
    folded.opset_import.extend(kept)
    onnx.save(folded, str(target))


def _name_kernels(model: Any) -> None:
    """Writes out each convolution's kernel_shape, which ONNX leaves to the weights' own shape.

    TensorRT 8.6 takes an absent one for another shape where the weights come from a DequantizeLinear.
    """
    from onnx import helper

    shapes = {item.name: list(item.dims) for item in model.graph.initializer}
    for node in model.graph.node:
        absent = all(attribute.name != "kernel_shape" for attribute in node.attribute)
        if node.op_type in ("Conv", "ConvTranspose") and absent and node.input[1] in shapes:
            node.attribute.append(helper.make_attribute("kernel_shape", shapes[node.input[1]][2:]))


def _check(target: Path) -> None:
    import onnx

    model = onnx.load(str(target))
    integers = {item.name for item in model.graph.initializer if item.data_type == onnx.TensorProto.INT32}
    quantized: list[Any] = [node for node in model.graph.node if node.op_type == "DequantizeLinear"]
    if not quantized:
        raise BuildFailed(
            f"nothing was quantized: the model has none of {', '.join(HEAVY)} with constant weights; "
            "write precision = 'fp16' in model.toml"
        )
    if refused := [node.name for node in quantized if node.input[0] in integers]:
        raise BuildFailed(
            f"ONNX Runtime quantized a bias to int32 ({refused[0]}), which TensorRT refuses; "
            "install onnxruntime 1.18 or newer"
        )


@contextmanager
def _quiet() -> Iterator[None]:
    """Keeps ONNX Runtime from printing, and from advising on the root logger what `_fold` has done."""
    root = logging.getLogger()
    level = root.level
    root.setLevel(logging.ERROR)
    try:
        with redirect_stdout(io.StringIO()):
            yield
    finally:
        root.setLevel(level)
