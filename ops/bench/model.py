"""The model that every scenario runs: a two-layer perceptron with seeded weights, and what it must answer."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

IN, HIDDEN, OUT = 128, 64, 16
BATCHED, SINGLE = "bench-batched", "bench-single"
# model.toml's way of saying which batch sizes to run.
LADDERS = {BATCHED: (1, 8, 64), SINGLE: (1, 1, 1)}


def weights() -> dict[str, np.ndarray]:
    """The same four arrays, float32, in every process."""
    rng = np.random.default_rng(11)
    return {
        "w1": rng.standard_normal((IN, HIDDEN), np.float32) / 8,
        "b1": rng.standard_normal(HIDDEN, np.float32),
        "w2": rng.standard_normal((HIDDEN, OUT), np.float32) / 8,
        "b2": rng.standard_normal(OUT, np.float32),
    }


def build() -> onnx.ModelProto:
    """X float32[N, 128] -> y float32[N, 16]."""
    nodes = [
        helper.make_node("MatMul", ["x", "w1"], ["h1"]),
        helper.make_node("Add", ["h1", "b1"], ["h2"]),
        helper.make_node("Relu", ["h2"], ["h3"]),
        helper.make_node("MatMul", ["h3", "w2"], ["h4"]),
        helper.make_node("Add", ["h4", "b2"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "bench",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", IN])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", OUT])],
        [numpy_helper.from_array(array, name) for name, array in weights().items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def write_repository(folder: Path) -> Path:
    """Writes the model under both names, one a ladder; returns ``folder``."""
    content = build().SerializeToString()
    for name, sizes in LADDERS.items():
        low, opt, high = ([size, IN] for size in sizes)
        place = folder / name
        place.mkdir(parents=True)
        (place / "model.onnx").write_bytes(content)
        profile = f"[[profile]]\nx = {{ min = {low}, opt = {opt}, max = {high} }}\n"
        (place / "model.toml").write_text(f'source = "model.onnx"\nengine = "onnxruntime"\n\n{profile}')
    return folder


def inputs(jobs: int, seed: int = 0) -> np.ndarray:
    """float32[jobs, 128]: a row a job, 512 bytes each, all different."""
    return np.random.default_rng(seed).standard_normal((jobs, IN), np.float32)


def check(x: np.ndarray, rows: list[np.ndarray], who: str) -> None:
    """Compares every result, float32[1, 16], with numpy's.

    Raises:
        SystemExit: one is missing, or is not what its own input gives.
    """
    w = weights()
    expected = np.maximum(x @ w["w1"] + w["b1"], 0) @ w["w2"] + w["b2"]
    if len(rows) != len(x):
        raise SystemExit(f"{who}: {len(rows)} results for {len(x)} jobs")
    got = np.concatenate(rows)
    wrong = np.flatnonzero(~np.isclose(got, expected, rtol=1e-4, atol=1e-4).all(axis=1))
    if len(wrong):
        raise SystemExit(f"{who}: {len(wrong)} of {len(x)} results are wrong, the first is job {wrong[0]}")
