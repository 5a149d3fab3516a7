"""A lane for ONNX Runtime."""

from __future__ import annotations

from typing import ClassVar

from tensorq_engines.base.threaded_lane import ThreadedLane


class OnnxRuntimeLane(ThreadedLane):
    """Runs sessions on one thread; a tile may use more inside, see `EngineOptions.intra_op_threads`."""

    kind: ClassVar[str] = "onnxruntime"
