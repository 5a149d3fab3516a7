"""What engines that run an ONNX file on the host have in common."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import asdict
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Self

from tensorq.signature import Signature
from tensorq_engines.base.digest import file_digest
from tensorq_engines.base.engine import HostEngine
from tensorq_engines.base.errors import ModelLoadFailed, RepositoryError
from tensorq_engines.base.footprint import Footprint
from tensorq_engines.base.options import EngineOptions
from tensorq_engines.base.processor import processor
from tensorq_engines.base.profile import Profile
from tensorq_engines.base.wire import Wire
from tensorq_engines.onnx_model.batch_axis import BatchAxis
from tensorq_engines.onnx_model.header import Header, read_header
from tensorq_engines.onnx_model.prepare import prepared_model

if TYPE_CHECKING:
    from tensorq_engines.repository.entry import ModelEntry


class OnnxEngine(HostEngine):
    """A `HostEngine` whose description is read from the ONNX file, once, when first asked for.

    Attributes:
        source: the ONNX file.
        options: the worker's settings.
    """

    def __init__(
        self,
        name: str,
        source: Path,
        *,
        profiles: Sequence[Profile] = (),
        batch_axis: BatchAxis | None = None,
        wires: Sequence[Wire] = (),
        options: EngineOptions | None = None,
    ) -> None:
        """Keeps what it is told and reads nothing.

        Args:
            name: the model's name.
            source: the ONNX file.
            profiles: shapes outside all of them are refused; none admits what the signature does.
            batch_axis: 0 or ``"none"`` where the rule for deriving it from the model is wrong.
            wires: inputs that travel as another dtype than the model's.
            options: the worker's settings; None for defaults.
        """
        super().__init__(name)
        self.source = source
        self.options = EngineOptions() if options is None else options
        self._profiles = tuple(profiles)
        self._batch_axis = batch_axis
        self._wires = tuple(wires)

    @classmethod
    def from_entry(cls, entry: ModelEntry, options: EngineOptions) -> Self:
        """Builds the engine of a model in a repository."""
        return cls(
            entry.name,
            entry.source,
            profiles=entry.profiles,
            batch_axis=entry.settings.batch_axis,
            wires=entry.wires,
            options=options,
        )

    @cached_property
    def _header(self) -> Header:
        try:
            return read_header(self.source, self._profiles, self._batch_axis, "model.toml", self._wires)
        except RepositoryError as exc:
            raise ModelLoadFailed(f"model {self.name!r}: {exc}") from exc

    @property
    def signature(self) -> Signature:
        """See `Engine.signature`."""
        return self._header.signature

    @property
    def profiles(self) -> tuple[Profile, ...]:
        """See `Engine.profiles`."""
        return self._profiles

    @property
    def ladder(self) -> tuple[int, ...]:
        """See `Engine.ladder`."""
        return self._header.ladder

    @property
    def footprint(self) -> Footprint:
        """See `Engine.footprint`."""
        return self._header.footprint

    @cached_property
    def identity(self) -> str:
        """See `Engine.identity`; weights in other files count by the model file alone, which names them."""
        try:
            model = file_digest(self.source)
        except OSError as exc:
            raise ModelLoadFailed(
                f"model {self.name!r}: {self.source} cannot be read: {exc.strerror or exc}"
            ) from exc
        try:
            runtime = self._runtime()
        except ImportError as exc:
            raise ModelLoadFailed(f"model {self.name!r}: {self.kind} cannot be imported: {exc}") from exc
        parts = {"model": model, "wires": [asdict(wire) for wire in self._wires], "processor": processor()}
        return json.dumps(parts | runtime, sort_keys=True)

    def load(self) -> None:
        """See `Engine.load`."""
        if self.loaded:
            return
        _ = self._header
        try:
            self._open()
        except ModelLoadFailed:
            raise
        except Exception as exc:
            raise ModelLoadFailed(
                f"model {self.name!r}: {self.kind} cannot load {self.source}: {type(exc).__name__}: {exc}; "
                "export it for the installed versions, or choose another engine in model.toml"
            ) from exc

    def _model(self) -> str | bytes:
        """Returns what a runtime loads: the file's path, or the model where its inputs were changed."""
        return prepared_model(self.source, self._wires) if self._wires else str(self.source)

    @abstractmethod
    def _runtime(self) -> dict[str, object]:
        """Returns the runtime, its version and what of its settings tiles' times depend on."""

    @abstractmethod
    def _open(self) -> None:
        """Loads the model; whatever it raises becomes `ModelLoadFailed`."""
