"""Every error that engines and the model repository raise on purpose, under `EngineError`.

Errors of onnx, ONNX Runtime and TensorRT are translated where they surface, with ``from exc``.
"""

from __future__ import annotations

from collections.abc import Sequence

from tensorq.errors import TensorqError
from tensorq_engines.base.problem import Problem


class EngineError(TensorqError):
    """Root of all errors of this package."""


class RepositoryError(EngineError):
    """A model's folder or its files are wrong.

    Attributes:
        problems: all that is wrong, at least one.
    """

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = list(problems)


class ModelLoadFailed(EngineError):
    """A model cannot be loaded; the message names the model, its file and what to do."""


class BuildFailed(ModelLoadFailed):
    """A plan cannot be built; the message names the model, the builder's words and what to do."""


class ModelDoesNotFit(ModelLoadFailed):
    """A model needs more memory than its worker's budget leaves; the message has the numbers."""


class ShapeRefused(EngineError):
    """The engine does not run tiles of these shapes; nothing was run and no slot was taken."""


class TileFailed(EngineError):
    """A tile was run and failed, in the engine's own words; the engine and its lane go on working."""


class SlotMisuse(EngineError):
    """A slot or lane was used out of order: a mistake of the calling program, never of the data."""


class SlotTimeout(EngineError, TimeoutError):
    """A tile is not done yet; the slot stays as it is and may be waited for again."""


class LaneClosed(EngineError):
    """The lane takes no more tiles because it was closed."""


class ResidencyClosed(EngineError):
    """No model is loaded any more because the worker's residency was closed."""


class EngineFatal(EngineError):
    """The device or its runtime is beyond repair in this process, which must end.

    The lane raises it from every later call, and for every tile that was still waiting.
    """
