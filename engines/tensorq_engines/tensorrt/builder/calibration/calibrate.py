"""Calibrate: from data to a quantized graph beside the model."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tensorq_engines.base.errors import BuildFailed, ModelLoadFailed
from tensorq_engines.tensorrt.builder.calibration.data import TILE_ROWS, CalibrationData
from tensorq_engines.tensorrt.builder.calibration.quantize import Method, quantize
from tensorq_engines.tensorrt.builder.calibration.result import Calibration, graph_path, write_calibration
from tensorq_engines.tensorrt.builder.source import read_source

if TYPE_CHECKING:
    from tensorq_engines.repository.entry import ModelEntry


def calibrate(entry: ModelEntry, files: Sequence[Path], method: Method = "minmax") -> Calibration:
    """Quantizes a model to int8 by the ranges that its values take on some data.

    Args:
        entry: the model; `int8` need not be its precision yet.
        files: .npz files with one array an input, rows as jobs send them. A few hundred rows that look like
            those to come are enough.
        method: how a range is chosen from the values seen; the others than ``minmax`` keep all values in
            memory and need rows of one shape.

    Returns:
        What was written beside the model.

    Raises:
        ModelLoadFailed: the model cannot be read.
        BuildFailed: the data or the model is refused, or the model's folder cannot be written to.
    """
    import onnxruntime

    source = read_source(entry)
    # The histograms behind the other methods need tiles of one shape.
    tile_rows = TILE_ROWS if method == "minmax" else 1
    data = CalibrationData(files, source.header.signature, entry.wires, tile_rows)
    with tempfile.TemporaryDirectory(prefix="tensorq-calibrate-") as scratch:
        target = Path(scratch) / "quantized.onnx"
        try:
            quantize(entry.source, target, data, method)
        except ModelLoadFailed as exc:
            raise BuildFailed(f"model {entry.name!r}: {exc}") from exc
        except Exception as exc:
            raise BuildFailed(
                f"model {entry.name!r}: ONNX Runtime cannot quantize {entry.source}: "
                f"{type(exc).__name__}: {exc}; write precision = 'fp16' in model.toml"
            ) from exc
        graph = target.read_bytes()
    calibration = Calibration(
        source=source.digest,
        wires=repr(entry.wires),
        sha256=hashlib.sha256(graph).hexdigest(),
        rows=data.rows,
        method=method,
        made_with=f"onnxruntime.quantization {onnxruntime.__version__}",
    )
    try:
        write_calibration(entry, graph, calibration)
    except OSError as exc:
        raise BuildFailed(
            f"model {entry.name!r}: {graph_path(entry)} cannot be written: {exc.strerror or exc}; "
            "make the model's folder writable and run it again"
        ) from exc
    return calibration
