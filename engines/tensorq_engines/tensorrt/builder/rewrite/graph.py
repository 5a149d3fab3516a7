"""The graph that TensorRT parses: a model with all of its changes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tensorq_engines.base.errors import BuildFailed
from tensorq_engines.base.profile import Profile
from tensorq_engines.onnx_model.wire import WIRE_VERSION, add_wires
from tensorq_engines.tensorrt.builder.calibration.result import graph_path
from tensorq_engines.tensorrt.builder.precision import PrecisionMeans
from tensorq_engines.tensorrt.builder.rewrite.axes import AXES_VERSION, tell_apart
from tensorq_engines.tensorrt.builder.rewrite.bfloat16 import BFLOAT16_VERSION, to_bfloat16
from tensorq_engines.tensorrt.builder.rewrite.float16 import converter_version, to_float16

if TYPE_CHECKING:
    from tensorq_engines.repository.entry import ModelEntry

INLINE_BYTES = 1 << 30


def describe_rewrites(entry: ModelEntry, means: PrecisionMeans) -> tuple[str, ...]:
    """Returns what `write_graph` does, with versions, for the plan's key."""
    rewrites = [f"axes {AXES_VERSION}"]
    if means.converter == "float16":
        rewrites.append(converter_version())
    elif means.converter == "bfloat16":
        rewrites.append(f"bfloat16 {BFLOAT16_VERSION}")
    rewrites += [f"wire {WIRE_VERSION} {wire!r}" for wire in entry.wires]
    return tuple(rewrites)


def write_graph(
    entry: ModelEntry, means: PrecisionMeans, profiles: Sequence[Profile], scratch: Path
) -> tuple[Path, Any]:
    """Writes the changed model to ``scratch``, where anything had to change.

    Returns:
        The file to parse, and its ``onnx.ModelProto``.

    Raises:
        BuildFailed: the model's weights cannot be read, or it cannot be converted to its precision.
    """
    import onnx

    source = graph_path(entry) if means.calibrated else entry.source
    model = _load(entry.name, source)
    model = _convert(entry.name, model, means)
    changed = tell_apart(model, profiles) or means.converter is not None or bool(entry.wires)
    # The wire comes after the conversion, because it computes in float32.
    add_wires(model, entry.wires)
    if not changed:
        return source, model
    path = scratch / "model.onnx"
    external = sum(len(item.raw_data) for item in model.graph.initializer) > INLINE_BYTES
    # Saving with external data takes the weights out of the model it is given; nodes are all we need then.
    onnx.save(model, str(path), save_as_external_data=external)
    return path, model


def _load(name: str, source: Path) -> Any:
    import onnx

    try:
        return onnx.load(str(source))
    except Exception as exc:  # onnx takes no links for weight files, though ONNX Runtime does
        raise BuildFailed(
            f"model {name!r}: {source} cannot be read with its weights: {exc}; "
            "put the whole weight files themselves beside it"
        ) from exc


def _convert(name: str, model: Any, means: PrecisionMeans) -> Any:
    try:
        if means.converter == "float16":
            return to_float16(model)
        if means.converter == "bfloat16":
            to_bfloat16(model)
    except Exception as exc:
        raise BuildFailed(
            f"model {name!r}: it cannot be converted to {means.converter}: {type(exc).__name__}: {exc}; "
            "write precision = 'fp32' in model.toml, or export the model in that precision"
        ) from exc
    return model
