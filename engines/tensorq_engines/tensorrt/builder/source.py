"""Source: a model's ONNX file as the builder sees it before anything is changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tensorq_engines.base.errors import ModelLoadFailed, RepositoryError
from tensorq_engines.onnx_model.external import external_locations
from tensorq_engines.onnx_model.header import Header, read_header
from tensorq_engines.onnx_model.wire import add_wires
from tensorq_engines.tensorrt.builder.digest import model_digest

if TYPE_CHECKING:
    from tensorq_engines.repository.entry import ModelEntry


@dataclass(frozen=True, slots=True)
class Source:
    """What an ONNX file is.

    Attributes:
        header: its signature as jobs see it, ladder and estimated footprint.
        digest: of the file and its external data.
    """

    header: Header
    digest: str


def read_source(entry: ModelEntry) -> Source:
    """Reads the model file of an entry and checks model.toml against it.

    Raises:
        ModelLoadFailed: the file is no ONNX model, cannot be read, or does not fit model.toml.
    """
    import onnx

    if entry.source.suffix != ".onnx":
        raise ModelLoadFailed(
            f"model {entry.name!r}: got {entry.source.name}, expected an .onnx file to build a plan from; "
            "name one as source in model.toml"
        )
    try:
        header = read_header(
            entry.source, entry.profiles, entry.settings.batch_axis, "model.toml", entry.wires
        )
        model = onnx.load(str(entry.source), load_external_data=False)
        return Source(header, model_digest(entry.source, external_locations(model)))
    except RepositoryError as exc:
        raise ModelLoadFailed(f"model {entry.name!r}: {exc}") from exc
    except OSError as exc:
        raise ModelLoadFailed(f"model {entry.name!r}: {exc.filename} cannot be read: {exc.strerror}") from exc


def read_graph(entry: ModelEntry) -> Any:
    """Returns the ``onnx.ModelProto`` of an entry that `read_source` accepts, with its wire inputs.

    External weights are not read.
    """
    import onnx

    model = onnx.load(str(entry.source), load_external_data=False)
    add_wires(model, entry.wires)
    return model
