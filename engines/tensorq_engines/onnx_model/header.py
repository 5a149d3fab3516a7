"""Header: all that is read from an ONNX file before its model is loaded."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tensorq.signature import Signature
from tensorq_engines.base.errors import RepositoryError
from tensorq_engines.base.footprint import Footprint
from tensorq_engines.base.ladder import derive_ladder
from tensorq_engines.base.problem import Problem
from tensorq_engines.base.profile import Profile
from tensorq_engines.base.profile_check import check_order, check_profiles
from tensorq_engines.base.wire import Wire
from tensorq_engines.onnx_model.activations import estimate_activations
from tensorq_engines.onnx_model.batch_axis import BatchAxis
from tensorq_engines.onnx_model.external import check_external
from tensorq_engines.onnx_model.signature import read_signature
from tensorq_engines.onnx_model.tensors import element_bytes
from tensorq_engines.onnx_model.wire import add_wires, check_wires


@dataclass(frozen=True, slots=True)
class Header:
    """What an ONNX file and its profiles say of a model.

    Attributes:
        signature: inputs and outputs.
        ladder: batch sizes worth running, ascending.
        footprint: memory in bytes of the largest tile, as an estimate from the file alone.
    """

    signature: Signature
    ladder: tuple[int, ...]
    footprint: Footprint


def read_header(
    source: Path,
    profiles: Sequence[Profile] = (),
    batch_axis: BatchAxis | None = None,
    settings: str = "",
    wires: Sequence[Wire] = (),
) -> Header:
    """Reads an ONNX file without its external weights.

    Args:
        source: the file.
        profiles: the model's profiles.
        batch_axis: what model.toml says of the batch axis; None derives it.
        settings: the file that profiles, batch axis and wires came from, for messages.
        wires: inputs that travel as another dtype than the model's.

    Raises:
        RepositoryError: with all that is wrong with the file, and with the profiles against it.
    """
    model = _parse(source)
    problems = check_external(model, source)
    if misfits := check_wires(model, wires, settings):
        problems += misfits
    else:
        add_wires(model, wires)
    signature = read_signature(model, source, batch_axis, settings, problems)
    problems += check_order(profiles, settings)
    if signature is not None:
        problems += check_profiles(profiles, signature, settings)
    if problems or signature is None:
        raise RepositoryError(problems)
    ladder = derive_ladder(profiles, signature)
    return Header(signature, ladder, _footprint(model, signature, profiles, ladder))


def _parse(source: Path) -> Any:
    import onnx
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

    try:
        model = onnx.load(str(source), load_external_data=False)
    except OSError as exc:
        message = f"cannot be read: {exc.strerror or exc}"
        raise RepositoryError([Problem(str(source), "", message, "put the ONNX file there")]) from exc
    except DecodeError as exc:
        message = "is not an ONNX model, or is cut short"
        raise RepositoryError([Problem(str(source), "", message, "export or copy it again")]) from exc
    if not model.graph.node:
        message = f"is not an ONNX model: no graph in {source.stat().st_size} bytes"
        raise RepositoryError([Problem(str(source), "", message, "export or copy it again")])
    return model


def _footprint(
    model: Any, signature: Signature, profiles: Sequence[Profile], ladder: tuple[int, ...]
) -> Footprint:
    constants = [
        attribute.t
        for node in model.graph.node
        if node.op_type == "Constant"
        for attribute in node.attribute
        if attribute.HasField("t")
    ]
    weights = sum(
        math.prod(tensor.dims) * element_bytes(tensor.data_type)
        for tensor in (*model.graph.initializer, *constants)
    )
    largest = [{item.name: item.max for item in profile} for profile in profiles] or [{}]
    estimates = [
        estimate_activations(model, signature, _fill(signature, shapes, ladder[-1])) for shapes in largest
    ]
    arena, io = (max(column) for column in zip(*estimates, strict=True))
    return Footprint(weights_bytes=weights, arena_bytes=arena, io_bytes=io)


def _fill(signature: Signature, shapes: dict[str, tuple[int, ...]], rows: int) -> dict[str, tuple[int, ...]]:
    """Completes a tile's shapes: the batch axis is ``rows``, any other free axis counts as 1."""
    filled = {}
    for spec in signature.inputs:
        free = [rows if axis == 0 and signature.batch_axis == 0 else 1 for axis in range(len(spec.shape))]
        lengths = (want if isinstance(want, int) else one for want, one in zip(spec.shape, free, strict=True))
        filled[spec.name] = shapes.get(spec.name) or tuple(lengths)
    return filled
