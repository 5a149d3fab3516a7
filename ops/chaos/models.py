"""Three models made on the fly, whose right results are known from the input alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from ops.chaos.work import AFFINE, LOOKUP, PAIR, Kind, Work

from tensorq import wire

WIDTH, WIDE = 4, 20_000
DEADLY = -4096.0
"""A number in an input of the affine model at which the worker under test kills itself."""
MOST_ROWS = 16

Tensors = dict[str, np.ndarray]


def write_repository(folder: Path, jobs: int) -> Path:
    """Writes the three models, the lookup table large enough for ``jobs`` jobs; returns ``folder``."""
    f32, i64 = TensorProto.FLOAT, TensorProto.INT64
    node = helper.make_node
    weights = {"two": np.array([2], np.float32), "one": np.array([1], np.float32)}
    affine = _model(
        [node("Mul", ["x", "two"], ["d"]), node("Add", ["d", "one"], ["y"])],
        {"x": (f32, ["N", "W"])},
        {"y": (f32, ["N", "W"])},
        weights,
    )
    pair = _model(
        [
            node("Cast", ["b"], ["bf"], to=f32),
            node("Cast", ["a"], ["ai"], to=i64),
            node("Add", ["a", "bf"], ["sum"]),
            node("Sub", ["ai", "b"], ["diff"]),
        ],
        {"a": (f32, ["N", WIDTH]), "b": (i64, ["N", WIDTH])},
        {"sum": (f32, ["N", WIDTH]), "diff": (i64, ["N", WIDTH])},
        {},
    )
    entries = np.arange(jobs * MOST_ROWS, dtype=np.float32)
    lookup = _model(
        [node("Gather", ["table", "index"], ["y"])],
        {"index": (i64, ["N"])},
        {"y": (f32, ["N", 2])},
        {"table": np.stack([entries, 3 * entries + 1], axis=1)},
    )
    _write(folder / AFFINE, affine, {"x": (f"1, {WIDTH}", f"4, {WIDTH}", f"8, {WIDE}")})
    _write(folder / PAIR, pair, dict.fromkeys("ab", (f"1, {WIDTH}", f"4, {WIDTH}", f"16, {WIDTH}")))
    _write(folder / LOOKUP, lookup, {"index": ("1", "4", "16")})
    return folder


def tensors(work: Work, jobs: int) -> Tensors:
    """The inputs of a job, as its kind has them."""
    places = np.arange(work.rows)
    if work.kind is Kind.KILLS:
        return {"x": np.full((work.rows, WIDTH), DEADLY, np.float32)}
    if work.model == LOOKUP:
        index = (work.number * MOST_ROWS + places).astype(np.int64)
        if work.kind is Kind.FAILS_TILE:
            index[-1] = jobs * MOST_ROWS + work.number
        return {"index": index}
    if work.model == PAIR:
        a = np.repeat((work.number + places)[:, None], WIDTH, axis=1)
        return {"a": a.astype(np.float32), "b": (a * 7).astype(np.int64)}
    x = np.repeat((work.number + places / MOST_ROWS)[:, None], WIDE if work.wide else WIDTH, axis=1)
    return {"x": x.astype(np.float32)}


def payload(work: Work, jobs: int) -> bytes:
    """What a hostile producer stores for a job that the SDK would refuse."""
    if work.kind is Kind.GARBAGE:
        return wire.pack(tensors(work, jobs))[:-3]
    return wire.pack({"x": tensors(work, jobs)["x"].astype(np.float64)})


def expected(work: Work, jobs: int) -> Tensors:
    """The right result of an innocent job; every number is exact in float32."""
    given = tensors(work, jobs)
    if work.model == LOOKUP:
        entries = given["index"].astype(np.float32)
        return {"y": np.stack([entries, 3 * entries + 1], axis=1)}
    if work.model == PAIR:
        return {
            "sum": given["a"] + given["b"].astype(np.float32),
            "diff": given["a"].astype(np.int64) - given["b"],
        }
    return {"y": 2 * given["x"] + 1}


def _model(
    nodes: list[onnx.NodeProto],
    inputs: Mapping[str, tuple[int, list[int | str]]],
    outputs: Mapping[str, tuple[int, list[int | str]]],
    weights: Mapping[str, np.ndarray],
) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "chaos",
        [helper.make_tensor_value_info(name, *spec) for name, spec in inputs.items()],
        [helper.make_tensor_value_info(name, *spec) for name, spec in outputs.items()],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _write(folder: Path, model: onnx.ModelProto, profile: Mapping[str, tuple[str, str, str]]) -> None:
    folder.mkdir(parents=True)
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    lines = [
        f"{name} = {{ min = [{low}], opt = [{opt}], max = [{high}] }}"
        for name, (low, opt, high) in profile.items()
    ]
    (folder / "model.toml").write_text("\n".join(['engine = "onnxruntime"', "[[profile]]", *lines, ""]))
