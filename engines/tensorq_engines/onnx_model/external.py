"""External data: the weight files beside an ONNX file."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tensorq_engines.base.problem import Problem


def check_external(model: Any, source: Path) -> list[Problem]:
    """Returns weight files that are missing, or lie outside the model's folder, each once."""
    problems = []
    for location in sorted(set(external_locations(model))):
        folder = source.parent.resolve()
        target = _resolved(folder, location)
        if target is None:
            message = f"keeps weights in {location!r}, which is no path of a file"
            remedy = "save the model with its weights beside it"
        elif not target.is_relative_to(folder):
            message = f"keeps weights in {location!r}, outside the model's folder"
            remedy = "save the model with its weights beside it"
        elif not os.path.isfile(target):  # unlike Path.is_file, False for any name
            message = f"keeps weights in {location!r}, and there is no such file"
            remedy = "copy that file beside the model"
        else:
            continue
        problems.append(Problem(str(source), "external data", message, remedy))
    return problems


def _resolved(folder: Path, location: str) -> Path | None:
    try:
        return (folder / location).resolve()
    except (ValueError, RuntimeError):  # a name with a null, links in a circle
        return None


def external_locations(model: Any) -> list[str]:
    """Returns the weight files of an ``onnx.ModelProto``, relative to its folder, with repetitions."""
    from onnx import TensorProto

    return [
        entry.value
        for tensor in _tensors(model)
        if tensor.data_location == TensorProto.EXTERNAL
        for entry in tensor.external_data
        if entry.key == "location"
    ]


def _tensors(model: Any) -> Iterator[Any]:
    yield from _graph_tensors(model.graph)
    for function in model.functions:
        yield from _node_tensors(function.node)


def _graph_tensors(graph: Any) -> Iterator[Any]:
    yield from graph.initializer
    yield from _node_tensors(graph.node)


def _node_tensors(nodes: Iterable[Any]) -> Iterator[Any]:
    """Weights that stand in nodes: those of constants, and of the bodies of branches and loops."""
    for node in nodes:
        for attribute in node.attribute:
            yield from (attribute.t, *attribute.tensors)
            for graph in (attribute.g, *attribute.graphs):
                yield from _graph_tensors(graph)
