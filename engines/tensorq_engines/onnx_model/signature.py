"""Signature of an ONNX graph."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tensorq.signature import Signature, TensorSpec
from tensorq_engines.base.problem import Problem
from tensorq_engines.onnx_model.batch_axis import BatchAxis, derive_batch_axis, objection
from tensorq_engines.onnx_model.inference import infer
from tensorq_engines.onnx_model.tensors import UNKNOWN_RANK, TensorRefused, read_tensor


def read_signature(
    model: Any, source: Path, batch_axis: BatchAxis | None, settings: str, problems: list[Problem]
) -> Signature | None:
    """Returns the signature of an ``onnx.ModelProto``, or None where it has none.

    Args:
        model: the model, its weights not needed.
        source: its file, for messages.
        batch_axis: what model.toml says of the batch axis; None derives it.
        settings: the file that ``batch_axis`` came from, for messages.
        problems: what is wrong is appended here.
    """
    found = len(problems)
    weights = {weight.name for weight in model.graph.initializer}
    inputs = _read((info for info in model.graph.input if info.name not in weights), source, problems)
    outputs = _read(_outputs(model), source, problems)
    file = str(source)
    for side, infos in (("input", inputs), ("output", outputs)):
        if not infos and len(problems) == found:
            remedy = f"export a model with at least one {side}"
            problems.append(Problem(file, "", f"the model has no {side}s", remedy))
    for spec in inputs:
        if spec.shape == UNKNOWN_RANK:
            remedy = "export the model with its input shapes; free axes may be symbols"
            problems.append(Problem(file, spec.name, "this input declares no shape", remedy))
        elif not spec.shape:
            message = f"input {spec} is a scalar, and a job's inputs are rows"
            problems.append(Problem(file, spec.name, message, "give it an axis, or fix it as a constant"))
    if len(problems) > found:
        return None
    if batch_axis == 0 and (why := objection(inputs, outputs)):
        remedy = "export the model with a batch axis in all tensors, or remove the key"
        problems.append(Problem(settings, "batch_axis", f"got 0, but {why}", remedy))
        return None
    axis = derive_batch_axis(inputs, outputs) if batch_axis is None else None if batch_axis == "none" else 0
    return Signature(tuple(inputs), tuple(outputs), axis)


def _read(infos: Iterable[Any], source: Path, problems: list[Problem]) -> list[TensorSpec]:
    specs = []
    for info in infos:
        try:
            specs.append(read_tensor(info))
        except TensorRefused as exc:
            problems.append(Problem(str(source), info.name, *exc.args))
    return specs


def _outputs(model: Any) -> list[Any]:
    declared = list(model.graph.output)
    if all(info.type.tensor_type.HasField("shape") for info in declared):
        return declared
    try:
        return list(infer(model).graph.output)
    except Exception:  # what inference cannot tell stays unknown: the model may still run
        return declared
