"""Loaded model: a native engine together with what the model was described by."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from tensorq.signature import Signature, TensorSpec
from tensorq_engines.base.admission import Shapes, sizes_for, tile_shapes
from tensorq_engines.base.errors import ModelLoadFailed, ShapeRefused
from tensorq_engines.base.profile import Profile
from tensorq_engines.tensorrt.casts import is_carried
from tensorq_engines.tensorrt.native import NativeEngine, Port

GraphSizes = Literal["ladder", "none"] | tuple[int, ...]


@dataclass(frozen=True, eq=False)
class LoadedModel:
    """What lanes need of a model between its load and its close.

    Attributes:
        name: the model's name.
        native: the engine.
        signature: what jobs carry.
        profiles: those with ranges.
        ladder: batch sizes worth running, ascending.
        graph_sizes: which of them are captured.
    """

    name: str
    native: NativeEngine
    signature: Signature
    profiles: tuple[Profile, ...]
    ladder: tuple[int, ...]
    graph_sizes: GraphSizes

    def expect_match(self) -> None:
        """Returns if jobs of the signature can be carried into the engine and out of it.

        Raises:
            ModelLoadFailed: a tensor is missing, or of a dtype that is never cast.
        """
        for word, specs, ports in (
            ("input", self.signature.inputs, self.native.inputs),
            ("output", self.signature.outputs, self.native.outputs),
        ):
            have = {port.name: port for port in ports}
            if {spec.name for spec in specs} != set(have):
                raise ModelLoadFailed(
                    f"the plan has {word}s {sorted(have)}, expected {sorted(spec.name for spec in specs)} "
                    "by its description; build it anew"
                )
            for spec in specs:
                _expect_dtype(spec, have[spec.name])

    def may_capture(self, shapes: Shapes) -> bool:
        """Tells whether the model's settings allow graphs of tiles of ``shapes``."""
        return self.graph_sizes == "ladder" or (
            not isinstance(self.graph_sizes, str) and self._rows(shapes) in self.graph_sizes
        )

    def is_hot(self, shapes: Shapes) -> bool:
        """Tells whether tiles of ``shapes`` are captured at once: a ladder size of rows known beforehand."""
        sizes = self.ladder if isinstance(self.graph_sizes, str) else self.graph_sizes
        if not self.may_capture(shapes) or self._rows(shapes) not in sizes:
            return False
        rows = self._row_shapes(shapes)
        return any(all(known.get(name) in (None, rows[name]) for name in rows) for known in self._known)

    def largest_like(self, shapes: Shapes) -> Shapes:
        """Returns the shapes of the largest tile of the ladder with the same rows."""
        if self.signature.batch_axis != 0:
            return shapes
        row_shapes = self._row_shapes(shapes)
        try:
            sizes = sizes_for(self.name, self.signature, self.profiles, self.ladder, row_shapes)
        except ShapeRefused:
            return shapes
        return tile_shapes(self.signature, row_shapes, max(sizes[-1], self._rows(shapes)))

    @cached_property
    def cast_inputs(self) -> tuple[TensorSpec, ...]:
        """Inputs that jobs carry in another dtype than the engine takes."""
        have = {port.name: port.dtype for port in self.native.inputs}
        return tuple(spec for spec in self.signature.inputs if have[spec.name] != spec.dtype)

    @cached_property
    def casts_outputs(self) -> bool:
        """Whether jobs get an output in another dtype than the engine gives."""
        have = {port.name: port.dtype for port in self.native.outputs}
        return any(have[spec.name] != spec.dtype for spec in self.signature.outputs)

    @cached_property
    def _known(self) -> list[Mapping[str, tuple[int, ...]]]:
        """The rows that profiles are tuned for; an input that is absent has rows of one shape only."""
        skip = 1 if self.signature.batch_axis == 0 else 0
        free = {
            spec.name
            for spec in self.signature.inputs
            if any(isinstance(axis, str) for axis in spec.shape[skip:])
        }
        tuned: list[Mapping[str, tuple[int, ...]]] = [
            {item.name: item.opt[skip:] for item in profile if item.name in free} for profile in self.profiles
        ]
        return tuned if tuned or free else [{}]

    def _row_shapes(self, shapes: Shapes) -> dict[str, tuple[int, ...]]:
        skip = 1 if self.signature.batch_axis == 0 else 0
        return {name: tuple(shape[skip:]) for name, shape in shapes.items()}

    def _rows(self, shapes: Shapes) -> int:
        return shapes[self.signature.inputs[0].name][0] if self.signature.batch_axis == 0 else 1


def _expect_dtype(spec: TensorSpec, port: Port) -> None:
    if not is_carried(spec.dtype, port.dtype):
        raise ModelLoadFailed(
            f"the plan has {port.name!r} in {port.dtype}, expected {spec.dtype} by its description, and "
            "these two are not cast; build it anew"
        )
