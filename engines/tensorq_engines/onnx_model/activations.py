"""Activations: an estimate of the memory that one tile needs beside the weights, on the host."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tensorq.signature import Signature
from tensorq_engines.onnx_model.fold import infer_fixed
from tensorq_engines.onnx_model.inference import elements
from tensorq_engines.onnx_model.tensors import TensorRefused, read_tensor


def estimate_activations(
    model: Any, signature: Signature, shapes: Mapping[str, tuple[int, ...]]
) -> tuple[int, int]:
    """Returns bytes of activations alive at once, and bytes of inputs and outputs, for a tile of ``shapes``.

    Nodes are taken in the graph's order and a tensor lives until its last reader. What inference cannot
    tell counts as nothing, an unknown axis as 1, and the insides of subgraphs are not looked at, so this is
    a lower bound; it depends on the file alone. `sizing.estimate` is for TensorRT, which fuses.
    """
    sizes = _sizes(model, shapes)
    carried = {spec.name for spec in (*signature.inputs, *signature.outputs)}
    io_bytes = sum(sizes.get(name, 0) for name in carried)
    # Some exporters write weights as Constant nodes; those count as weights.
    nodes = [node for node in model.graph.node if node.op_type != "Constant"]
    last = {name: index for index, node in enumerate(nodes) for name in node.input}
    alive: dict[str, int] = {}
    peak = 0
    for index, node in enumerate(nodes):
        made = (name for name in node.output if name not in carried)
        alive.update((name, sizes.get(name, 0)) for name in made)
        peak = max(peak, sum(alive.values()))
        alive = {name: size for name, size in alive.items() if last.get(name, -1) > index}
    return peak, io_bytes


def _sizes(model: Any, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, int]:
    try:
        graph = infer_fixed(model, shapes).graph
    except Exception:  # an estimate: a model that onnx cannot infer over still runs
        return {}
    sizes = {}
    for info in (*graph.input, *graph.output, *graph.value_info):
        try:
            spec = read_tensor(info)
        except TensorRefused:
            continue
        sizes[info.name] = elements(spec.shape) * np.dtype(spec.dtype).itemsize
    return sizes
