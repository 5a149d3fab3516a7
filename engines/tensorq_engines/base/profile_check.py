"""What is wrong with profiles, alone and against a signature. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tensorq.signature import Signature, TensorSpec
from tensorq_engines.base.problem import Problem, suggest
from tensorq_engines.base.profile import InputRange, Profile


def check_order(profiles: Sequence[Profile], file: str) -> list[Problem]:
    """Returns where min <= opt <= max does not hold, axis by axis; needs no model."""
    return [
        problem
        for index, profile in enumerate(profiles)
        for item in profile
        for problem in _order(item, f"profile[{index}].{item.name}", file)
    ]


def check_profiles(profiles: Sequence[Profile], signature: Signature, file: str) -> list[Problem]:
    """Returns what in ``profiles`` does not fit ``signature``; order within a range is not looked at."""
    return [
        problem
        for index, profile in enumerate(profiles)
        for problem in _against(profile, signature, f"profile[{index}]", file)
    ]


def _order(item: InputRange, key: str, file: str) -> Iterator[Problem]:
    ranks = {len(item.min), len(item.opt), len(item.max)}
    if len(ranks) > 1:
        got = f"min, opt and max have {len(item.min)}, {len(item.opt)} and {len(item.max)} axes"
        yield Problem(file, key, got, "give all three the input's rank")
        return
    for axis, (low, opt, high) in enumerate(zip(item.min, item.opt, item.max, strict=True)):
        if not low <= opt <= high:
            got = f"axis {axis} has min {low}, opt {opt}, max {high}, expected min <= opt <= max"
            yield Problem(file, key, got, "put the three in ascending order")


def _against(profile: Profile, signature: Signature, key: str, file: str) -> Iterator[Problem]:
    specs = {spec.name: spec for spec in signature.inputs}
    given = {item.name: item for item in profile}
    for name, item in given.items():
        if name not in specs:
            yield Problem(file, f"{key}.{name}", "the model has no such input", suggest(name, specs))
        else:
            yield from _against_spec(item, specs[name], f"{key}.{name}", file)
    for name, spec in specs.items():
        if name not in given and any(isinstance(axis, str) for axis in spec.shape):
            got = f"input {spec} has free axes and no range"
            yield Problem(file, key, got, f"add {name} = {{ min = [...], opt = [...], max = [...] }}")
    known = [given[name] for name in specs if name in given and len(given[name].min) > 0]
    rows = {item.name: (item.min[:1], item.opt[:1], item.max[:1]) for item in known}
    if signature.batch_axis == 0 and len(set(rows.values())) > 1:
        got = f"inputs {', '.join(rows)} differ in min, opt or max of the batch axis"
        yield Problem(file, key, got, "give axis 0 the same lengths in all inputs")


def _against_spec(item: InputRange, spec: TensorSpec, key: str, file: str) -> Iterator[Problem]:
    for word, shape in (("min", item.min), ("opt", item.opt), ("max", item.max)):
        if len(shape) != len(spec.shape):
            got = f"got {len(shape)} axes, but the input is {spec}"
            yield Problem(file, f"{key}.{word}", got, f"give {len(spec.shape)} lengths")
            continue
        for axis, (want, length) in enumerate(zip(spec.shape, shape, strict=True)):
            if isinstance(want, int) and want != length:
                got = f"axis {axis} is fixed at {want} in {spec}, got {length}"
                yield Problem(file, f"{key}.{word}", got, f"write {want}, or export the axis as free")
