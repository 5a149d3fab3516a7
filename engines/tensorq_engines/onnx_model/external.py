"""External data: the weight files beside an ONNX file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tensorq_engines.base.problem import Problem


def check_external(model: Any, source: Path) -> list[Problem]:
    """Returns weight files that are missing, or lie outside the model's folder, each once."""
    problems = []
    for location in sorted(set(external_locations(model))):
        folder = source.parent.resolve()
        target = (folder / location).resolve()
        if not target.is_relative_to(folder):
            message = f"keeps weights in {location!r}, outside the model's folder"
            remedy = "save the model with its weights beside it"
        elif not target.is_file():
            message = f"keeps weights in {location!r}, and there is no such file"
            remedy = "copy that file beside the model"
        else:
            continue
        problems.append(Problem(str(source), "external data", message, remedy))
    return problems


def external_locations(model: Any) -> list[str]:
    """Returns the weight files of an ``onnx.ModelProto``, relative to its folder, with repetitions."""
    from onnx import TensorProto

    return [
        entry.value
        for tensor in model.graph.initializer
        if tensor.data_location == TensorProto.EXTERNAL
        for entry in tensor.external_data
        if entry.key == "location"
    ]
