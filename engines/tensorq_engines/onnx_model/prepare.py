"""Prepare: the model that engines load where model.toml changes how its inputs travel."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tensorq_engines.base.errors import ModelLoadFailed, RepositoryError
from tensorq_engines.base.wire import Wire
from tensorq_engines.onnx_model.wire import add_wires, check_wires


def prepared_model(source: Path, wires: Sequence[Wire]) -> bytes:
    """Returns the ONNX file with its weights and ``wires`` put in, as one serialized model.

    Raises:
        ModelLoadFailed: the model is larger than a serialized one may be.
        RepositoryError: ``wires`` do not fit the model.
    """
    import onnx
    from google.protobuf.message import EncodeError  # type: ignore[import-untyped]

    model = onnx.load(str(source))
    if problems := check_wires(model, wires, "model.toml"):
        raise RepositoryError(problems)
    add_wires(model, wires)
    try:
        return bytes(model.SerializeToString())
    except (EncodeError, ValueError) as exc:
        raise ModelLoadFailed(
            f"{source} has more than the 2 GiB that one serialized model holds, which [inputs] in "
            "model.toml needs; put the cast into the model when exporting it"
        ) from exc
