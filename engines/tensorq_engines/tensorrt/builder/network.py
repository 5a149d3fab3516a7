"""Network: an ONNX file as TensorRT's builder takes it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tensorq_engines.base.errors import BuildFailed
from tensorq_engines.tensorrt.builder.parse_errors import describe_errors
from tensorq_engines.tensorrt.flavour import Flavour


def parse(flavour: Flavour, builder: Any, path: Path, model: Any, name: str) -> tuple[Any, Any]:
    """Returns the ``INetworkDefinition`` of an ONNX file, and the parser, whose weights the network reads.

    Args:
        flavour: the TensorRT at hand.
        builder: its ``Builder``. It and the parser must outlive the network.
        path: the file to parse.
        model: the same as an ``onnx.ModelProto``, for messages.
        name: the model's name, for messages.

    Raises:
        BuildFailed: TensorRT does not take the model; one line for each node that it refuses.
    """
    network = builder.create_network(_flags(flavour.module))
    with flavour.log.listen() as heard:
        parser = flavour.module.OnnxParser(network, flavour.log.native)
        if parser.parse_from_file(str(path)):
            _refuse_shape_inputs(network, name)
            return network, parser
        errors = describe_errors(map(parser.get_error, range(parser.num_errors)), model.graph.node)
    opsets = ", ".join(f"{item.domain or 'ai.onnx'} {item.version}" for item in model.opset_import)
    lines = "\n  ".join([*errors, *_unsupported(parser, model)] or [str(heard)])
    raise BuildFailed(
        f"model {name!r}: {flavour.name} {flavour.version_text} refuses the model (opset {opsets}):\n"
        f"  {lines}\nexport it without these, in another opset, or choose engine 'onnxruntime' in model.toml"
    )


def _flags(trt: Any) -> int:
    # Without it 8.6 takes the batch for an axis outside the shapes; 11 knows no other way and no flag.
    explicit = getattr(trt.NetworkDefinitionCreationFlag, "EXPLICIT_BATCH", None)
    return 0 if explicit is None else 1 << int(explicit)


def _unsupported(parser: Any, model: Any) -> list[str]:
    """Returns a line on operators that the parser does not know; older ones stop at the first."""
    if not hasattr(parser, "supports_operator"):
        return []
    operators = {node.op_type for node in model.graph.node if node.domain in ("", "ai.onnx")}
    refused = sorted(name for name in operators if not parser.supports_operator(name))
    return [f"operators it does not have: {', '.join(refused)}"] if refused else []


def _refuse_shape_inputs(network: Any, name: str) -> None:
    for index in range(network.num_inputs):
        tensor = network.get_input(index)
        if tensor.is_shape_tensor:
            raise BuildFailed(
                f"model {name!r}: input {tensor.name!r} is read as a shape, and a plan would need the range "
                "of its values; export the model with that input fixed as a constant"
            )
