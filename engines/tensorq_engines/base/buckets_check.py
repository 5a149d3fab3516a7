"""What is wrong with buckets, against a signature and profiles. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from tensorq.signature import Signature, TensorSpec
from tensorq_engines.base.buckets import Buckets, Crop, Fill
from tensorq_engines.base.problem import Problem, suggest
from tensorq_engines.base.profile import Profile

Place = tuple[TensorSpec, int]


def check_buckets(
    buckets: Sequence[Buckets], signature: Signature, profiles: Sequence[Profile], file: str
) -> list[Problem]:
    """Returns what in ``[buckets]`` of ``file`` does not fit the model.

    Args:
        buckets: one entry an axis.
        signature: the model's, as jobs see it.
        profiles: the model's; none where shapes are bound by the signature alone.
        file: the file to name.
    """
    problems: list[Problem] = []
    padded: dict[tuple[str, int], str] = {}
    fills: dict[str, tuple[str, Fill]] = {}
    cropped: dict[tuple[str, int], str] = {}
    for item in buckets:
        key = f"buckets.{item.axis}"
        places = item.places(signature)
        if not places:
            problems.append(_unknown_axis(item.axis, signature, key, file))
        for spec, axis in places:
            if (first := padded.setdefault((spec.name, axis), key)) != key:
                got = f"axis {axis} of {spec} is padded by {first} too"
                problems.append(Problem(file, key, got, "remove one of the two"))
            fill = item.fill_of(spec.name)
            first, other = fills.setdefault(spec.name, (key, fill))
            if not _same(fill, other):
                got = f"got {fill} for {spec.name}, but {first} fills it with {other}"
                problems.append(Problem(file, f"{key}.fill", got, "give an input one fill for all its axes"))
        problems += _check_lengths(item, places, profiles, key, file)
        problems += _check_fill(item, places, key, file)
        for crop in item.crops:
            place = f"{key}.crop.{crop.output}"
            problems += _check_crop(crop, signature, place, file)
            if (first := cropped.setdefault((crop.output, crop.axis), place)) != place:
                got = f"axis {crop.axis} is cropped by {first} too"
                problems.append(Problem(file, place, got, "remove one of the two"))
    return problems


def _unknown_axis(axis: str, signature: Signature, key: str, file: str) -> Problem:
    if signature.batch_axis == 0 and any(axis in (s.shape[0], f"{s.name}.0") for s in signature.inputs):
        got = "this is the batch axis, which is filled up to sizes of the ladder by itself"
        return Problem(file, key, got, "remove it; sizes come from a [[profile]]")
    known = {
        name: None
        for spec in signature.inputs
        for index, length in enumerate(spec.shape)
        if isinstance(length, str) and index != signature.batch_axis
        for name in (length, f"{spec.name}.{index}")
    }
    inputs = ", ".join(map(str, signature.inputs))
    return Problem(file, key, f"no such free axis in the inputs {inputs}", suggest(axis, known))


def _check_lengths(
    item: Buckets, places: Sequence[Place], profiles: Sequence[Profile], key: str, file: str
) -> Iterator[Problem]:
    if not profiles or not places:
        return
    outside = [n for n in item.lengths if not any(_within(profile, places, n) for profile in profiles)]
    if outside:
        names = {spec.name for spec, _ in places}
        ranges = " or ".join(", ".join(str(i) for i in profile if i.name in names) for profile in profiles)
        got = f"lengths {outside} are outside all profiles, which take {ranges}"
        yield Problem(file, key, got, "remove them, or widen a [[profile]]")


def _within(profile: Profile, places: Sequence[Place], length: int) -> bool:
    ranges = {item.name: item for item in profile}
    return all(
        spec.name in ranges and ranges[spec.name].min[axis] <= length <= ranges[spec.name].max[axis]
        for spec, axis in places
    )


def _check_fill(item: Buckets, places: Sequence[Place], key: str, file: str) -> Iterator[Problem]:
    specs = {spec.name: spec for spec, _ in places}
    if isinstance(item.fill, Mapping) and specs:
        for name in item.fill:
            if name not in specs:
                got = f"no input of this name has the axis {item.axis}"
                yield Problem(file, f"{key}.fill.{name}", got, suggest(name, specs))
    for name, spec in specs.items():
        fill = item.fill_of(name)
        if not _holds(np.dtype(spec.dtype), fill):
            place = f"{key}.fill.{name}" if isinstance(item.fill, Mapping) else f"{key}.fill"
            got = f"got {fill}, which {spec} cannot hold"
            yield Problem(file, place, got, f"give a value of {spec.dtype}, or fill = {{ {name} = ... }}")


def _holds(dtype: np.dtype, value: Fill) -> bool:
    if dtype.kind == "b":
        return value in (0, 1)
    if dtype.kind in "iu":
        limits = np.iinfo(dtype)
        return math.isfinite(value) and value == int(value) and limits.min <= value <= limits.max
    with np.errstate(over="ignore"):
        return not math.isfinite(value) or bool(np.isfinite(dtype.type(value)))


def _same(one: Fill, other: Fill) -> bool:
    return one == other or (one != one and other != other)


def _check_crop(crop: Crop, signature: Signature, key: str, file: str) -> Iterator[Problem]:
    outputs = {spec.name: spec for spec in signature.outputs}
    if crop.output not in outputs:
        yield Problem(file, key, "the model has no such output", suggest(crop.output, outputs))
        return
    spec = outputs[crop.output]
    # An output of unknown rank is taken on trust, and looked at when it comes.
    if "..." in spec.shape:
        return
    free = [n for n, length in enumerate(spec.shape) if isinstance(length, str) and n != signature.batch_axis]
    if crop.axis not in free:
        what = "the batch axis" if crop.axis == signature.batch_axis else "not a free axis"
        remedy = f"use one of: {', '.join(map(str, free))}" if free else "remove it"
        yield Problem(file, f"{key}.axis", f"got {crop.axis}, which is {what} of {spec}", remedy)
