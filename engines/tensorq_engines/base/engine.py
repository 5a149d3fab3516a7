"""Engine: a model as an object."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import TracebackType
from typing import ClassVar, Self

import numpy as np

from tensorq.signature import Signature
from tensorq_engines.base.admission import Shapes, admit, sizes_for
from tensorq_engines.base.footprint import Footprint
from tensorq_engines.base.memory import EngineMemory
from tensorq_engines.base.profile import Profile


class Engine(ABC):
    """A model that lanes of the same kind run tiles of.

    The constructor is cheap and touches neither file nor device. What describes the model, `signature`,
    `profiles`, `ladder` and `footprint`, is there before `load`; where it cannot be read, the property
    raises `ModelLoadFailed`. `load` and `close` come from one thread at a time. The owner closes an engine
    only when no lane has a slot of it between acquire and release.

    Attributes:
        kind: the name of the engine's kind, such as ``onnxruntime``; a lane runs engines of its own kind.
        shares_activations: whether the models of one lane use one arena in turn; else each has its own.
        name: the model's name.
    """

    kind: ClassVar[str]
    shares_activations: ClassVar[bool]

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    @abstractmethod
    def loaded(self) -> bool:
        """Whether tiles can run: after `load`, before `close`."""

    @property
    @abstractmethod
    def signature(self) -> Signature:
        """The model's inputs and outputs."""

    @property
    @abstractmethod
    def profiles(self) -> tuple[Profile, ...]:
        """The model's profiles; empty where shapes are bound by the signature alone."""

    @property
    @abstractmethod
    def ladder(self) -> tuple[int, ...]:
        """The batch sizes worth running, ascending."""

    @property
    @abstractmethod
    def footprint(self) -> Footprint:
        """The memory, in bytes, that the model asks for; the same before, while and after it is loaded."""

    @property
    @abstractmethod
    def memory(self) -> EngineMemory:
        """What the engine has taken now, lanes' contexts included; from any thread."""

    @property
    @abstractmethod
    def identity(self) -> str | None:
        """What a tile's time depends on beside its shapes, as text: model, runtime and device, with versions.

        None while the model has no plan yet, which the first `load` builds; it does not change otherwise.

        Raises:
            ModelLoadFailed: the model cannot be read.
        """

    @abstractmethod
    def load(self) -> None:
        """Makes the model ready to run; does nothing if it is.

        Raises:
            ModelLoadFailed: names the model, its file, the runtime's words and what to do.
        """

    @abstractmethod
    def close(self) -> None:
        """Gives the model's memory back; does nothing if it is not loaded. It may be loaded again."""

    def check_shapes(self, shapes: Shapes) -> None:
        """Returns if the model runs a tile of ``shapes``, one an input, the batch axis included.

        Raises:
            ShapeRefused: it does not; the message gives the shapes that it does run.
        """
        admit(self.name, self.signature, self.profiles, shapes)

    def ladder_for(self, row_shapes: Shapes) -> tuple[int, ...]:
        """Returns the ladder's sizes that are admitted for rows of one shape.

        Args:
            row_shapes: the shape of one row of each input, without the batch axis; for a model without a
                batch axis the whole shape.

        Raises:
            ShapeRefused: rows of this shape fit no tile of the ladder.
        """
        return sizes_for(self.name, self.signature, self.profiles, self.ladder, row_shapes)

    def __enter__(self) -> Self:
        self.load()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class HostEngine(Engine):
    """An engine that computes inside a call on the calling thread, for `ThreadedLane`."""

    shares_activations: ClassVar[bool] = False

    @property
    def memory(self) -> EngineMemory:
        """What the footprint asks for, while loaded: what a process takes says little, it may never fall."""
        if not self.loaded:
            return EngineMemory()
        return EngineMemory(self.footprint.weights_bytes, arena_bytes=self.footprint.arena_bytes)

    @abstractmethod
    def execute(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Runs one tile; lanes on several threads may call it at once.

        Args:
            inputs: C-contiguous arrays of admitted shapes, unchanged until the outputs are released.

        Returns:
            One array an output; it may alias ``inputs``.

        Raises:
            Exception: whatever the runtime raises; the lane turns it into `TileFailed`.
        """
