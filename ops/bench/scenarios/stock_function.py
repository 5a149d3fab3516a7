"""The function that stock RQ calls; the worker imports it by name."""

from __future__ import annotations

import os
from functools import cache
from typing import Any

import numpy as np
import onnxruntime


@cache
def _session() -> Any:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(
        os.environ["BENCH_MODEL"], options, providers=["CPUExecutionProvider"]
    )


def predict(x: np.ndarray) -> np.ndarray:
    """X float32[N, 128] -> float32[N, 16]; the model is loaded by the first call."""
    y: np.ndarray = _session().run(["y"], {"x": x})[0]
    return y
