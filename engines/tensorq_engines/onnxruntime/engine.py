"""A model run by ONNX Runtime."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from tensorq_engines.base.errors import ModelLoadFailed
from tensorq_engines.base.processor import usable_cores
from tensorq_engines.onnx_model.engine import OnnxEngine
from tensorq_engines.tensorrt.cuda.device import Device, driver_version

CUDA = "CUDAExecutionProvider"
CPU = "CPUExecutionProvider"
SILENT = 4


class OnnxRuntimeEngine(OnnxEngine):
    """An ``onnxruntime.InferenceSession`` that is made on load and shared by all lanes."""

    kind: ClassVar[str] = "onnxruntime"
    _session: Any = None

    @property
    def loaded(self) -> bool:
        """See `Engine.loaded`."""
        return self._session is not None

    def close(self) -> None:
        """See `Engine.close`; ONNX Runtime may keep the memory for the process's next session."""
        self._session = None

    def execute(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """See `HostEngine.execute`."""
        import onnxruntime

        options = onnxruntime.RunOptions()
        options.log_severity_level = SILENT
        names = [spec.name for spec in self.signature.outputs]
        return dict(zip(names, self._session.run(names, dict(inputs), options), strict=True))

    def _runtime(self) -> dict[str, object]:
        import onnxruntime

        providers = self._providers(onnxruntime.get_available_providers())
        device = Device.probe() if CUDA in providers else None
        return {
            "runtime": f"{self.kind} {onnxruntime.__version__}",
            "providers": providers,
            "threads": self.options.intra_op_threads or usable_cores(),
            "device": None if device is None else f"{device.name}, {driver_version()}",
        }

    def _open(self) -> None:
        import onnxruntime

        options = onnxruntime.SessionOptions()
        # Errors come as exceptions, with the same words; on stderr they would come once more.
        options.log_severity_level = SILENT
        # ONNX Runtime keeps a plan of its memory for every set of shapes that it ever saw.
        options.enable_mem_pattern = not self._takes_any_shape()
        if self.options.intra_op_threads is not None:
            options.intra_op_num_threads = self.options.intra_op_threads
        providers = self._providers(onnxruntime.get_available_providers())
        self._session = onnxruntime.InferenceSession(self._model(), options, providers=providers)

    def _takes_any_shape(self) -> bool:
        """Tells whether rows differ in shape, so that there is no end of shapes."""
        signature = self.signature
        return any(
            isinstance(length, str)
            for spec in signature.inputs
            for axis, length in enumerate(spec.shape)
            if axis != signature.batch_axis
        )

    def _providers(self, available: list[str]) -> list[str]:
        if self.options.providers is None:
            return [name for name in (CUDA, CPU) if name in available]
        # ONNX Runtime itself warns and goes on without the provider.
        if absent := [name for name in self.options.providers if name not in available]:
            raise ModelLoadFailed(
                f"model {self.name!r}: got providers {list(self.options.providers)}, but this ONNX Runtime "
                f"has no {absent[0]}, only {available}; install a build that has it or name others"
            )
        return list(self.options.providers)
