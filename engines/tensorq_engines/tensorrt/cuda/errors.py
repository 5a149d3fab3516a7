"""Errors of CUDA calls."""

from __future__ import annotations

from tensorq_engines.base.errors import EngineError


class CudaError(EngineError):
    """A CUDA call failed and the device is still usable.

    Attributes:
        code: CUDA's number of the error.
        name: CUDA's name of it.
        call: the function that returned it; an asynchronous error may be an earlier call's.
    """

    def __init__(self, code: int, name: str, text: str, call: str) -> None:
        super().__init__(f"{call} returned {code} ({name}): {text}")
        self.code = code
        self.name = name
        self.call = call


class CudaOutOfMemory(CudaError):
    """Device memory, or page-locked host memory, does not suffice."""


class CudaMissing(EngineError):
    """There is no usable GPU, or cuda-python is not installed; the message says which and what to do."""
