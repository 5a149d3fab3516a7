"""bfloat16 for TensorRT that takes types from the graph alone: casts around the heavy nodes."""

from __future__ import annotations

from typing import Any

BFLOAT16_VERSION = 1
# Not ConvTranspose: TensorRT-RTX 1.7 has no bfloat16 one.
HEAVY = frozenset({"Conv", "Gemm", "MatMul"})


def to_bfloat16(model: Any) -> None:
    """Makes convolutions and matrix products of float32 compute in bfloat16; all else stays float32.

    Weights keep their float32 bytes in the file and are cast when the plan is built. Bodies of loops and
    branches are left as they are.
    """
    from onnx import TensorProto, helper

    others = _not_float(model)
    nodes = []
    for index, node in enumerate(model.graph.node):
        if node.op_type not in HEAVY or any(name in others for name in node.input):
            nodes.append(node)
            continue
        for place, name in enumerate(node.input):
            if name:
                node.input[place] = f"{name}/bf16/{index}.{place}"
                nodes.append(helper.make_node("Cast", [name], [node.input[place]], to=TensorProto.BFLOAT16))
        output = node.output[0]
        node.output[0] = f"{output}/bf16"
        nodes += [node, helper.make_node("Cast", [node.output[0]], [output], to=TensorProto.FLOAT)]
    del model.graph.node[:]
    model.graph.node.extend(nodes)


def _not_float(model: Any) -> set[str]:
    from onnx import TensorProto

    from tensorq_engines.onnx_model.inference import infer

    try:
        graph = infer(model).graph
    except Exception:  # where onnx cannot infer, types are taken for float32
        graph = model.graph
    infos = (*graph.input, *graph.output, *graph.value_info)
    floats = (TensorProto.UNDEFINED, TensorProto.FLOAT)
    weights = {item.name for item in model.graph.initializer if item.data_type not in floats}
    return weights | {info.name for info in infos if info.type.tensor_type.elem_type not in floats}
