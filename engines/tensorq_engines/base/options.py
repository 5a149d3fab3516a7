"""Options: what a worker may set for its engines."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """Settings of engines that are the worker's, not the model's; each kind reads those that it has.

    Attributes:
        intra_op_threads: CPU threads that one tile may use; None leaves the number to the runtime.
        providers: ONNX Runtime's execution providers, best first; None takes CUDA where there is one, and
            the CPU.
    """

    intra_op_threads: int | None = None
    providers: tuple[str, ...] | None = None
