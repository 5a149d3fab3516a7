"""Maxima: the largest tiles whose memory is asked for. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

from tensorq.errors import ConfigError
from tensorq.signature import Signature, TensorSpec
from tensorq_engines.base.profile import InputRange, Profile

Shape = tuple[int, ...]
Shapes = dict[str, Shape]

DEFAULT_BATCHES = (1, 2, 4, 8, 16, 32, 64)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be sized besides what model.toml says.

    Attributes:
        batches: maximum rows, one size each.
        free: lengths of free axes by their symbol.
        tails: shapes of inputs by name, the batch axis apart.
    """

    batches: tuple[int, ...] = DEFAULT_BATCHES
    free: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    tails: Mapping[str, tuple[Shape, ...]] = field(default_factory=dict)

    def expect_known(self, signatures: Sequence[Signature]) -> None:
        """Checks that each symbol and input is one that a model has.

        Raises:
            ConfigError: none has it; the message says which there are.
        """
        specs = [spec for signature in signatures for spec in signature.inputs]
        names = {spec.name for spec in specs}
        symbols = {symbol for signature in signatures for symbol in _free_symbols(signature)}
        for what, given, known in (("input", self.tails, names), ("free axis", self.free, symbols)):
            for name in given:
                if name not in known:
                    there = ", ".join(sorted(known)) or "none"
                    raise ConfigError(f"no model has {what} {name!r}; there are: {there}")


def largest(signature: Signature, profile: Profile) -> Shapes:
    """Returns the shapes of the largest tile of a profile; a free axis without a range counts as 1."""
    given = {item.name: item.max for item in profile}
    return {
        spec.name: given.get(spec.name)
        or tuple(length if isinstance(length, int) else 1 for length in spec.shape)
        for spec in signature.inputs
    }


def covering(signature: Signature, profiles: Sequence[Profile]) -> Shapes:
    """Returns the largest length of each axis over all profiles, as the shapes of one tile."""
    tiles = [largest(signature, profile) for profile in profiles]
    return {
        spec.name: tuple(map(max, zip(*(tile[spec.name] for tile in tiles), strict=True)))
        for spec in signature.inputs
    }


def exactly(signature: Signature, shapes: Shapes) -> Profile:
    """Returns the profile that admits tiles of ``shapes`` at most."""
    free = [spec.name for spec in signature.inputs if any(isinstance(axis, str) for axis in spec.shape)]
    return Profile(tuple(InputRange(name, shapes[name], shapes[name], shapes[name]) for name in free))


def list_maxima(name: str, signature: Signature, own: Shapes | None, wanted: Wanted) -> list[Shapes]:
    """Returns the shapes of the tiles to size, each once, smaller ones first.

    Args:
        name: the model's, for messages.
        signature: the model's.
        own: the largest tile of its own profiles; None where it has none and none can be derived.
        wanted: what was asked for.

    Raises:
        ConfigError: a free axis has no length; a length is not one that the model takes.
    """
    rows: tuple[int | None, ...] = (None,)
    if signature.batch_axis == 0 and signature.fixed_rows is None:
        rows = wanted.batches
    symbols = _symbols(signature, wanted)
    found = []
    for lengths in product(*(wanted.free[symbol] for symbol in symbols)):
        given = dict(zip(symbols, lengths, strict=True))
        choices = [
            list(_tails(name, spec, signature.batch_axis, given, own, wanted)) for spec in signature.inputs
        ]
        for tails in product(*choices):
            for count in rows:
                found.append(
                    {
                        spec.name: tail if count is None else (count, *tail)
                        for spec, tail in zip(signature.inputs, tails, strict=True)
                    }
                )
    if own is not None:
        found.append(own)
    unique = {tuple(shapes.items()): shapes for shapes in found}
    return sorted(unique.values(), key=order)


def rows_of(signature: Signature, shapes: Shapes) -> int | None:
    """Returns the rows of a tile; None for a model whose jobs have none."""
    return None if signature.batch_axis is None else next(iter(shapes.values()))[0]


def order(shapes: Shapes) -> tuple[tuple[int, ...], ...]:
    """Sorts tiles by the lengths of their rows, then by how many rows they have."""
    values = list(shapes.values())
    return (*(shape[1:] for shape in values), tuple(shape[0] for shape in values))


def _symbols(signature: Signature, wanted: Wanted) -> list[str]:
    """Symbols of this model that lengths were given for, and that no given shape settles."""
    kept = [spec.name for spec in signature.inputs if spec.name not in wanted.tails]
    return [symbol for symbol in _free_symbols(signature, kept) if symbol in wanted.free]


def _free_symbols(signature: Signature, inputs: Sequence[str] | None = None) -> list[str]:
    """Symbols of free axes, the batch axis apart, each once."""
    found = {
        axis: None
        for spec in signature.inputs
        if inputs is None or spec.name in inputs
        for axis in spec.shape[signature.batch_axis is not None :]
        if isinstance(axis, str) and axis != "?"
    }
    return list(found)


def _tails(
    name: str,
    spec: TensorSpec,
    batch_axis: int | None,
    given: Mapping[str, int],
    own: Shapes | None,
    wanted: Wanted,
) -> Iterator[Shape]:
    """The shapes of one input, without the batch axis where it counts rows that are free."""
    skipped = 1 if batch_axis == 0 and isinstance(spec.shape[0], str) else 0
    axes = spec.shape[skipped:]
    if spec.name in wanted.tails:
        for tail in wanted.tails[spec.name]:
            fits = len(tail) == len(axes) and all(
                isinstance(want, str) or want == got for want, got in zip(axes, tail, strict=True)
            )
            if not fits:
                text = "x".join(map(str, tail))
                expected = "x".join(map(str, axes))
                raise ConfigError(
                    f"model {name!r}: got {text} for input {spec}, expected {expected} (the batch axis "
                    "apart); an axis that is to have another length must be exported as free"
                )
            yield tail
        return
    lengths = []
    for axis, want in enumerate(axes):
        if isinstance(want, int):
            lengths.append(want)
        elif want in given:
            lengths.append(given[want])
        elif own is not None:
            lengths.append(own[spec.name][axis + skipped])
        else:
            example = "x".join(str(want) if isinstance(want, int) else "640" for want in axes)
            raise ConfigError(
                f"model {name!r}: input {spec} is free on axis {axis + skipped}, and nothing says how long "
                f"it gets; write a [[profile]] into model.toml, or give --input {spec.name}={example}"
            )
    yield tuple(lengths)
