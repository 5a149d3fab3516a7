"""Model: the memory of one model at each largest tile asked for, as built where it is, else estimated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from tensorq.signature import Signature
from tensorq_engines.base.errors import BuildFailed, ModelLoadFailed
from tensorq_engines.base.footprint import Footprint
from tensorq_engines.base.profile import Profile
from tensorq_engines.sizing.accuracy import context_bytes
from tensorq_engines.sizing.estimate import Build, Estimate, estimate_plan
from tensorq_engines.sizing.maxima import (
    Shapes,
    Wanted,
    covering,
    exactly,
    largest,
    list_maxima,
    order,
    rows_of,
)
from tensorq_engines.tensorrt.plan import PlanFile
from tensorq_engines.tensorrt.sidecar import Sidecar

if TYPE_CHECKING:
    from tensorq_engines.repository.entry import ModelEntry

Basis = Literal["built", "estimate", "at least"]


@dataclass(frozen=True, slots=True)
class Size:
    """The memory of a plan whose largest tile is this.

    Attributes:
        shapes: the tile's.
        rows: its rows; None for a model whose jobs have none.
        own: whether it is what model.toml asks for, or what a plan would get without a word there.
        basis: ``built`` where the numbers are a plan's own, ``estimate`` where they are from the graph, and
            ``at least`` where onnx cannot tell the shapes of some of its tensors.
        footprint: bytes.
    """

    shapes: Shapes
    rows: int | None
    own: bool
    basis: Basis
    footprint: Footprint


@dataclass(frozen=True, slots=True)
class SizedModel:
    """A model and what it would need.

    Attributes:
        name: the model's.
        signature: the model's.
        engine: what model.toml asks for; one that runs on the host takes none of this.
        precision: what the numbers are for.
        plan: what it was built with and on, in words; None where it was not.
        sizes: at least one, smaller tiles first.
    """

    name: str
    signature: Signature
    engine: str
    precision: str
    plan: str | None
    sizes: tuple[Size, ...]

    def at(self, rows: int | None) -> Size | None:
        """Returns the largest size of ``rows`` rows, or, for None, of the model's own.

        A model that cannot have other rows has the same size for any.
        """
        fixed = self.signature.batch_axis is None or self.signature.fixed_rows is not None
        found = [size for size in self.sizes if (size.own if rows is None else fixed or size.rows == rows)]
        return max(found, key=lambda size: size.footprint.arena_bytes, default=None)


@dataclass(frozen=True, slots=True)
class Subject:
    """A model as it is on disk.

    Attributes:
        entry: its folder.
        signature: its inputs and outputs.
        plan: its plan; None where none was built of the model as it is now.
        graph: an ``onnx.ModelProto`` without external weights; None where there is a plan only.
    """

    entry: ModelEntry
    signature: Signature
    plan: PlanFile | None
    graph: Any


def open_model(entry: ModelEntry) -> Subject:
    """Reads a model's files; neither TensorRT nor a GPU is needed.

    Raises:
        ModelLoadFailed: they cannot be used, or are a plan without a sidecar.
    """
    from tensorq_engines.tensorrt.builder.built import find_built
    from tensorq_engines.tensorrt.builder.source import read_graph, read_source

    if entry.source.suffix == ".onnx":
        source = read_source(entry)
        return Subject(entry, source.header.signature, find_built(entry, source), read_graph(entry))
    plan = PlanFile.find(entry.source)
    if plan.sidecar is None:
        raise ModelLoadFailed(
            f"model {entry.name!r}: {entry.source.name} has no sidecar to tell its sizes; build it with "
            "`tensorq build`, or put the ONNX file there"
        )
    return Subject(entry, plan.sidecar.signature, plan, None)


def size_model(subject: Subject, wanted: Wanted) -> SizedModel:
    """Returns the memory of a model at its own largest tile and at those wanted.

    Raises:
        ConfigError: they do not fit the model.
        ModelLoadFailed: onnx cannot infer over the model.
    """
    entry, signature = subject.entry, subject.signature
    sidecar = subject.plan.sidecar if subject.plan is not None else None
    profiles = _own_profiles(subject, sidecar)
    own = covering(signature, profiles) if profiles else None
    built = {} if sidecar is None else _built(sidecar)
    precision = entry.settings.precision if sidecar is None else sidecar.precision
    build = Build(precision, entry.settings.tensorrt.optimization_level)
    maxima = list_maxima(entry.name, signature, own, wanted) if subject.graph is not None else []
    maxima += [dict(key) for key in built if dict(key) not in maxima]
    sizes = []
    for shapes in sorted(maxima, key=order):
        found = built.get(tuple(shapes.items()))
        basis: Basis = "built"
        if found is None:
            spread = profiles if shapes == own else [exactly(signature, shapes)] * max(len(profiles), 1)
            estimate = _estimate(subject, spread, build)
            found, basis = estimate.footprint, "at least" if estimate.unknown else "estimate"
        sizes.append(Size(shapes, rows_of(signature, shapes), shapes == own, basis, found))
    words = None if sidecar is None else _words(sidecar)
    return SizedModel(entry.name, signature, entry.settings.engine, precision, words, tuple(sizes))


def _own_profiles(subject: Subject, sidecar: Sidecar | None) -> Sequence[Profile]:
    from tensorq_engines.tensorrt.builder.profiles import choose_profiles

    if sidecar is not None:
        return sidecar.profiles
    entry = subject.entry
    try:
        return choose_profiles(
            entry.name, subject.signature, entry.profiles, entry.settings.tensorrt.profiles
        )
    except BuildFailed:
        return ()


def _built(sidecar: Sidecar) -> dict[tuple[tuple[str, tuple[int, ...]], ...], Footprint]:
    """Footprints by the largest tile of each profile, of a plan that has it and all that lie within it.

    Where none of them is the largest on every axis, the tile that covers all stands for the plan as it is.
    """
    tiles = [largest(sidecar.signature, profile) for profile in sidecar.profiles]
    found = {}
    for tile in (*tiles, covering(sidecar.signature, sidecar.profiles)):
        within = [index for index, other in enumerate(tiles) if _within(other, tile)]
        io_bytes = max(sidecar.io_bytes[index] for index in within)
        found[tuple(tile.items())] = Footprint(
            weights_bytes=sidecar.weights_bytes,
            arena_bytes=max(sidecar.activation_bytes[index] for index in within),
            io_bytes=io_bytes,
            pinned_bytes=io_bytes,
            context_bytes=sum(sidecar.context_bytes[index] for index in within),
        )
    return found


def _within(small: Shapes, large: Shapes) -> bool:
    return all(low <= high for name in large for low, high in zip(small[name], large[name], strict=True))


def _estimate(subject: Subject, profiles: Sequence[Profile], build: Build) -> Estimate:
    distinct = list(dict.fromkeys(profiles))
    kept = context_bytes()
    try:
        found = estimate_plan(subject.graph, subject.signature, distinct, build, kept)
    except ModelLoadFailed as exc:
        raise ModelLoadFailed(f"model {subject.entry.name!r}: {exc}") from exc
    footprint = replace(found.footprint, context_bytes=kept * len(profiles))
    return Estimate(footprint, found.unknown)


def _words(sidecar: Sidecar) -> str:
    return f"{sidecar.flavour} {sidecar.version_text}, {sidecar.device_name or 'no GPU'}"
