"""The result of a calibration: a quantized graph beside the model, and what it was made from."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

from tensorq_engines.base.digest import file_digest
from tensorq_engines.base.errors import BuildFailed
from tensorq_engines.tensorrt.builder.files import write_atomic

if TYPE_CHECKING:
    from tensorq_engines.repository.entry import ModelEntry


@dataclass(frozen=True, slots=True)
class Calibration:
    """What is known of a quantized graph.

    Attributes:
        source: digest of the model that was quantized.
        wires: model.toml's ``[inputs]`` when it was, as text.
        sha256: digest of the quantized graph.
        rows: rows of data that were looked at.
        method: how ranges were chosen.
        made_with: name and version of the quantizer.
    """

    source: str
    wires: str
    sha256: str
    rows: int
    method: str
    made_with: str


def graph_path(entry: ModelEntry) -> Path:
    """Returns where the quantized graph is: ``model.onnx`` has ``model.int8.onnx``."""
    return entry.source.with_suffix(".int8.onnx")


def note_path(entry: ModelEntry) -> Path:
    """Returns where its description is."""
    return entry.source.with_suffix(".int8.json")


def read_calibration(entry: ModelEntry, model: str) -> Calibration:
    """Returns the calibration of a model, checked against the model as it is now.

    Args:
        entry: the model.
        model: digest of its file and external data.

    Raises:
        BuildFailed: there is none, or it is of another model or damaged; the message says what to run.
    """
    remedy = f"run `tensorq calibrate {entry.folder} DATA.npz`, or write precision = 'fp16' in model.toml"
    head = f"model {entry.name!r}: model.toml asks for precision 'int8'"
    graph, note = graph_path(entry), note_path(entry)
    try:
        data = json.loads(note.read_text(encoding="utf-8"))
        found = Calibration(**{item.name: data[item.name] for item in fields(Calibration)})
        digest = file_digest(graph)
    except FileNotFoundError as exc:
        raise BuildFailed(f"{head}, and there is no {Path(exc.filename).name}; {remedy}") from exc
    except (OSError, ValueError, KeyError, TypeError) as exc:
        raise BuildFailed(f"{head}, and {note} cannot be read: {exc}; {remedy}") from exc
    if found.source != model or found.wires != repr(entry.wires):
        what = "model" if found.source != model else "[inputs] in model.toml"
        raise BuildFailed(f"{head}, and {graph.name} was made before the {what} changed; {remedy}")
    if digest != found.sha256:
        raise BuildFailed(f"{head}, and {graph} has sha256 {digest}, not {found.sha256}; {remedy}")
    return found


def write_calibration(entry: ModelEntry, graph: bytes, calibration: Calibration) -> None:
    """Writes both files.

    Raises:
        OSError: the model's folder cannot be written to.
    """
    write_atomic(graph_path(entry), graph)
    write_atomic(note_path(entry), (json.dumps(asdict(calibration), indent=1) + "\n").encode())
