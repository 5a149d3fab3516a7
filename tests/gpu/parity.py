"""ONNX Runtime on the CPU as the measure of what TensorRT gives."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import onnxruntime


@dataclass(frozen=True)
class Parity:
    """How far one output is from what it should be.

    Attributes:
        error: the greatest difference, as a share of the expected output's range.
        cosine: of the angle between the two.
    """

    error: float
    cosine: float

    @classmethod
    def of(cls, got: np.ndarray, want: np.ndarray) -> Parity:
        """Compares two arrays of one shape."""
        assert got.shape == want.shape
        a, b = (array.astype(np.float64).ravel() for array in (got, want))
        spread = float(np.ptp(b)) or 1.0
        length = float(np.linalg.norm(a) * np.linalg.norm(b)) or 1.0
        return cls(float(np.abs(a - b).max()) / spread, float(a @ b) / length)


class Reference:
    """An ONNX file run by ONNX Runtime."""

    def __init__(self, path: Path) -> None:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        self._session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])

    def run(self, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Returns all outputs."""
        names = [output.name for output in self._session.get_outputs()]
        return dict(zip(names, self._session.run(names, inputs), strict=True))


def compare(got: dict[str, np.ndarray], want: dict[str, np.ndarray]) -> dict[str, Parity]:
    """Parity of each output; the names may differ where there is one output only."""
    if len(got) == 1:
        return {name: Parity.of(array, next(iter(want.values()))) for name, array in got.items()}
    return {name: Parity.of(array, want[name]) for name, array in got.items()}


def as_facts(found: dict[str, Parity]) -> dict[str, dict[str, float]]:
    """For the JSON."""
    return {
        name: {key: float(f"{value:.6g}") for key, value in asdict(one).items()}
        for name, one in found.items()
    }
