"""Tiny ONNX models that all tests share, and a repository of them on disk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 17
IR_VERSION = 8

ShapeText = Sequence[int | str | None]


def build(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, tuple[int, ShapeText]],
    outputs: Mapping[str, tuple[int, ShapeText | None]],
    weights: Mapping[str, np.ndarray] | None = None,
) -> onnx.ModelProto:
    """A model of one graph; shapes hold ints, symbols, and None for a free axis without a symbol."""
    graph = helper.make_graph(
        list(nodes),
        "model",
        [helper.make_tensor_value_info(name, *spec) for name, spec in inputs.items()],
        [helper.make_tensor_value_info(name, *spec) for name, spec in outputs.items()],
        [numpy_helper.from_array(array, name) for name, array in (weights or {}).items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION)


def mlp() -> onnx.ModelProto:
    """x f32[N, 128] -> y f32[N, 16]: two layers of seeded random weights."""
    rng = np.random.default_rng(7)
    weights = {
        "w1": rng.standard_normal((128, 32), np.float32) / 8,
        "b1": rng.standard_normal(32, np.float32),
        "w2": rng.standard_normal((32, 16), np.float32) / 4,
        "b2": rng.standard_normal(16, np.float32),
    }
    nodes = [
        helper.make_node("MatMul", ["x", "w1"], ["h1"]),
        helper.make_node("Add", ["h1", "b1"], ["h2"]),
        helper.make_node("Relu", ["h2"], ["h3"]),
        helper.make_node("MatMul", ["h3", "w2"], ["h4"]),
        helper.make_node("Add", ["h4", "b2"], ["y"]),
    ]
    f32 = TensorProto.FLOAT
    return build(nodes, {"x": (f32, ["N", 128])}, {"y": (f32, ["N", 16])}, weights)


def affine() -> onnx.ModelProto:
    """x f32[N, W] -> y = 2x + 1."""
    nodes = [helper.make_node("Mul", ["x", "two"], ["d"]), helper.make_node("Add", ["d", "one"], ["y"])]
    weights = {"two": np.float32([2]), "one": np.float32([1])}
    f32 = TensorProto.FLOAT
    return build(nodes, {"x": (f32, ["N", "W"])}, {"y": (f32, ["N", "W"])}, weights)


def two_in_two_out() -> onnx.ModelProto:
    """a f32[N, 4], b int64[N, 4] -> sum f32[N, 4] = a + b, diff int64[N, 4] = int(a) - b."""
    f32, i64 = TensorProto.FLOAT, TensorProto.INT64
    nodes = [
        helper.make_node("Cast", ["b"], ["bf"], to=f32),
        helper.make_node("Cast", ["a"], ["ai"], to=i64),
        helper.make_node("Add", ["a", "bf"], ["sum"]),
        helper.make_node("Sub", ["ai", "b"], ["diff"]),
    ]
    inputs = {"a": (f32, ["N", 4]), "b": (i64, ["N", 4])}
    return build(nodes, inputs, {"sum": (f32, ["N", 4]), "diff": (i64, ["N", 4])})


def fixed_batch() -> onnx.ModelProto:
    """x f32[4, 3] -> y f32[4, 3] = x + x: a batch of exactly 4."""
    f32 = TensorProto.FLOAT
    return build([helper.make_node("Add", ["x", "x"], ["y"])], {"x": (f32, [4, 3])}, {"y": (f32, [4, 3])})


def no_batch() -> onnx.ModelProto:
    """x f32[3, 3] -> y f32[], the sum of all: a job has no rows."""
    f32 = TensorProto.FLOAT
    return build(
        [helper.make_node("ReduceSum", ["x"], ["y"], keepdims=0)], {"x": (f32, [3, 3])}, {"y": (f32, [])}
    )


def free_axes() -> onnx.ModelProto:
    """x f32[N, 3, H, W] -> y f32[N, 3], the mean over H and W."""
    f32 = TensorProto.FLOAT
    nodes = [helper.make_node("ReduceMean", ["x"], ["y"], axes=[2, 3], keepdims=0)]
    return build(nodes, {"x": (f32, ["N", 3, "H", "W"])}, {"y": (f32, ["N", 3])})


def convolution() -> onnx.ModelProto:
    """x f32[N, 3, W] -> y f32[N, 4, V], V = W / 2 rounded up: one convolution, its edges padded with 0."""
    weight = np.random.default_rng(5).standard_normal((4, 3, 3), np.float32)
    nodes = [helper.make_node("Conv", ["x", "w"], ["y"], strides=[2], pads=[1, 1])]
    f32 = TensorProto.FLOAT
    return build(nodes, {"x": (f32, ["N", 3, "W"])}, {"y": (f32, ["N", 4, "V"])}, {"w": weight})


def gather() -> onnx.ModelProto:
    """index int64[N] -> y f32[N, 4], rows of a table of 5; an index out of range fails at run time."""
    table = np.arange(20, dtype=np.float32).reshape(5, 4)
    nodes = [helper.make_node("Gather", ["table", "index"], ["y"])]
    outputs = {"y": (TensorProto.FLOAT, ["N", 4])}
    return build(nodes, {"index": (TensorProto.INT64, ["N"])}, outputs, {"table": table})


def slow(steps: int = 24, width: int = 384) -> onnx.ModelProto:
    """x f32[N, width] -> y: ``steps`` rotations of a row by one place, as matrix products; exact."""
    rotate = np.roll(np.eye(width, dtype=np.float32), 1, axis=1)
    names = ["x", *(f"h{step}" for step in range(1, steps)), "y"]
    nodes = [helper.make_node("MatMul", [before, "rotate"], [after]) for before, after in pairwise(names)]
    f32 = TensorProto.FLOAT
    return build(nodes, {"x": (f32, ["N", width])}, {"y": (f32, ["N", width])}, {"rotate": rotate})


def nap(width: int = 256, fails: bool = False) -> onnx.ModelProto:
    """x f32[N, 1] -> y = x, after as many matrix products as the greatest x says, of 0.1 to 1 ms each.

    With ``fails`` it fails after them.
    """
    rotate = np.roll(np.eye(width, dtype=np.float32), 1, axis=1)
    f32, i64, flag = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL
    turn = [helper.make_node("MatMul", ["v", "rotate"], ["w"]), helper.make_node("Identity", ["go"], ["on"])]
    body = helper.make_graph(
        turn,
        "body",
        [
            helper.make_tensor_value_info("step", i64, []),
            helper.make_tensor_value_info("go", flag, []),
            helper.make_tensor_value_info("v", f32, [width, width]),
        ],
        [
            helper.make_tensor_value_info("on", flag, []),
            helper.make_tensor_value_info("w", f32, [width, width]),
        ],
    )
    nodes = [
        helper.make_node("ReduceMax", ["x"], ["most"], keepdims=0),
        helper.make_node("Cast", ["most"], ["steps"], to=i64),
        helper.make_node("Loop", ["steps", "true", "rotate"], ["turned"], body=body),
        helper.make_node("ReduceSum", ["turned"], ["sum"], keepdims=0),
        helper.make_node("Sub", ["sum", "sum"], ["zero"]),
        helper.make_node("Add", ["x", "zero"], ["z"]),
        helper.make_node("Cast", ["zero"], ["first"], to=i64),
        helper.make_node("Sub", ["first", "past" if fails else "first"], ["index"]),
        helper.make_node("Gather", ["one", "index"], ["factor"]),
        helper.make_node("Mul", ["z", "factor"], ["y"]),
    ]
    weights = {"rotate": rotate, "true": np.array(True), "one": np.float32([1]), "past": np.int64(9)}
    return build(nodes, {"x": (f32, ["N", 1])}, {"y": (f32, ["N", 1])}, weights)


def compress() -> onnx.ModelProto:
    """keep bool[N] -> y f32[K], as many ones as were true: a first axis that is free but counts no rows."""
    nodes = [
        helper.make_node("Cast", ["keep"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("Compress", ["f", "keep"], ["y"], axis=0),
    ]
    return build(nodes, {"keep": (TensorProto.BOOL, ["N"])}, {"y": (TensorProto.FLOAT, ["K"])})


def _identity(elem_type: int) -> onnx.ModelProto:
    nodes = [helper.make_node("Identity", ["x"], ["y"])]
    return build(nodes, {"x": (elem_type, ["N", 4])}, {"y": (elem_type, ["N", 4])})


def identity_float16() -> onnx.ModelProto:
    """x f16[N, 4] -> y = x."""
    return _identity(TensorProto.FLOAT16)


def identity_bool() -> onnx.ModelProto:
    """x bool[N, 4] -> y = x."""
    return _identity(TensorProto.BOOL)


def identity_uint8() -> onnx.ModelProto:
    """x u8[N, 4] -> y = x."""
    return _identity(TensorProto.UINT8)


def identity_int64() -> onnx.ModelProto:
    """x int64[N, 4] -> y = x."""
    return _identity(TensorProto.INT64)


ALL = {
    model.__name__: model
    for model in (
        mlp,
        affine,
        two_in_two_out,
        fixed_batch,
        no_batch,
        free_axes,
        gather,
        slow,
        identity_float16,
        identity_bool,
        identity_uint8,
        identity_int64,
    )
}
"""Models by name, each a function without arguments; all run with zeros as inputs."""


def write_repository(path: Path, models: Mapping[str, tuple[onnx.ModelProto, str | None]]) -> Path:
    """Writes one folder a model, with model.onnx and, unless None, model.toml; returns ``path``."""
    for name, (model, settings) in models.items():
        folder = path / name
        folder.mkdir(parents=True)
        (folder / "model.onnx").write_bytes(model.SerializeToString())
        if settings is not None:
            (folder / "model.toml").write_text(settings, encoding="utf-8")
    return path
