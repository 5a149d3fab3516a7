"""The profiles that a plan is built with. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from tensorq.signature import Signature, TensorSpec
from tensorq_engines.base.errors import BuildFailed
from tensorq_engines.base.ladder import DEFAULT_LADDER
from tensorq_engines.base.profile import InputRange, Profile

Spread = Literal["one", "ladder"]


def choose_profiles(
    model: str, signature: Signature, given: Sequence[Profile], spread: Spread
) -> tuple[Profile, ...]:
    """Returns the profiles for a plan, at least one; one without ranges where no axis is free.

    Args:
        model: its name, for messages.
        signature: the model's.
        given: the profiles of model.toml, which fit the signature.
        spread: ``"ladder"`` makes of each profile one for each of its rows min, opt and max, tuned for
            exactly that many.

    Raises:
        BuildFailed: a free axis besides the batch has no range; the message says what to write.
    """
    free = [spec for spec in signature.inputs if _free_axes(spec)]
    if not free:
        return (Profile(()),)
    profiles = tuple(given) or (_derive(model, signature, free),)
    if spread == "one" or signature.batch_axis is None or signature.fixed_rows is not None:
        return profiles
    return tuple(dict.fromkeys(part for profile in profiles for part in _spread(profile)))


def _derive(model: str, signature: Signature, free: Sequence[TensorSpec]) -> Profile:
    unknown = [spec for spec in free if any(axis != signature.batch_axis for axis in _free_axes(spec))]
    if not unknown:
        low, opt, high = DEFAULT_LADDER
        return Profile(
            tuple(
                InputRange(spec.name, *(_with_rows(spec.shape, rows) for rows in (low, opt, high)))
                for spec in free
            )
        )
    axes = ", ".join(str(axis) for axis in _free_axes(unknown[0]) if axis != signature.batch_axis)
    lines = "\n".join(_example(spec, signature.batch_axis) for spec in free)
    raise BuildFailed(
        f"model {model!r}: input {unknown[0]} is free on axis {axes}, and TensorRT needs the range of every "
        f"free axis; write into model.toml, with the lengths of your own rows:\n[[profile]]\n{lines}"
    )


def _spread(profile: Profile) -> Iterator[Profile]:
    for rows in sorted(set(profile.rows())):
        yield Profile(
            tuple(
                InputRange(item.name, *((rows, *shape[1:]) for shape in (item.min, item.opt, item.max)))
                for item in profile
            )
        )


def _free_axes(spec: TensorSpec) -> list[int]:
    return [axis for axis, length in enumerate(spec.shape) if isinstance(length, str)]


def _with_rows(shape: Sequence[int | str], rows: int) -> tuple[int, ...]:
    return tuple(length if isinstance(length, int) else rows for length in shape)


def _example(spec: TensorSpec, batch_axis: int | None) -> str:
    parts = []
    for word, rows, other in zip(("min", "opt", "max"), DEFAULT_LADDER, (32, 320, 960), strict=True):
        free = (rows if axis == batch_axis else other for axis in range(len(spec.shape)))
        lengths = [want if isinstance(want, int) else one for want, one in zip(spec.shape, free, strict=True)]
        parts.append(f"{word} = {lengths}")
    return f"{spec.name} = {{ {', '.join(parts)} }}"
