"""A model run by onnx's own evaluator."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from tensorq_engines.onnx_model.engine import OnnxEngine


class ReferenceEngine(OnnxEngine):
    """An ``onnx.reference.ReferenceEvaluator`` that is made on load."""

    kind: ClassVar[str] = "reference"
    _evaluator: Any = None

    def __init__(self, name: str, source: Path, **settings: Any) -> None:
        super().__init__(name, source, **settings)
        # The evaluator's operators keep state while they run, so lanes take turns.
        self._turn = threading.Lock()

    @property
    def loaded(self) -> bool:
        """See `Engine.loaded`."""
        return self._evaluator is not None

    def close(self) -> None:
        """See `Engine.close`."""
        self._evaluator = None

    def execute(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """See `HostEngine.execute`."""
        names = [spec.name for spec in self.signature.outputs]
        with self._turn, np.errstate(all="ignore"):
            outputs = self._evaluator.run(names, dict(inputs))
        return dict(zip(names, outputs, strict=True))

    def _runtime(self) -> dict[str, object]:
        import onnx

        return {"runtime": f"{self.kind} {onnx.__version__}"}

    def _open(self) -> None:
        import onnx
        from onnx.reference import ReferenceEvaluator

        model = self._model()
        self._evaluator = ReferenceEvaluator(
            model if isinstance(model, str) else onnx.load_from_string(model)
        )
