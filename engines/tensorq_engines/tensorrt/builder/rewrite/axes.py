"""Symbolic axes that share one name by accident, told apart.

TensorRT's parser takes axes of one name for axes of one length. Exporters name all free axes ``?``, or use
one symbol for axes that differ.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tensorq.signature import Shape
from tensorq_engines.base.profile import Profile
from tensorq_engines.onnx_model.tensors import read_shape

AXES_VERSION = 1
NAMELESS = "?"


def distinct(shapes: Mapping[str, Shape], profiles: Sequence[Profile]) -> dict[str, Shape]:
    """Returns the shapes with a name of its own for every free axis that may differ from another.

    A symbol is kept where it stands for the same range in different inputs, as the length of a text does
    in its tokens and its mask. Two axes of one input never keep one symbol.

    Args:
        shapes: one an input, in the model's order.
        profiles: the profiles that the plan is built with.
    """
    first: dict[str, tuple[str, list[tuple[int, ...]]]] = {}
    named: dict[str, Shape] = {}
    for name, shape in shapes.items():
        axes: list[int | str] = []
        for axis, length in enumerate(shape):
            if isinstance(length, str):
                ranges = _ranges(name, axis, profiles)
                owner, expected = first.setdefault(length, (f"{name}.{axis}", ranges))
                kept = owner == f"{name}.{axis}" or (length not in axes and ranges == expected)
                length = length if kept and length != NAMELESS else f"{name}.{axis}"
            axes.append(length)
        named[name] = tuple(axes)
    return named


def tell_apart(model: Any, profiles: Sequence[Profile]) -> bool:
    """Renames free axes of an ``onnx.ModelProto``; returns whether any had to be."""
    weights = {weight.name for weight in model.graph.initializer}
    infos = {info.name: info for info in model.graph.input if info.name not in weights}
    shapes = {name: read_shape(info.type.tensor_type.shape) for name, info in infos.items()}
    named = distinct(shapes, profiles)
    if named == shapes:
        return False
    for name, info in infos.items():
        _write(info, named[name])
    for info in model.graph.output:
        shape = read_shape(info.type.tensor_type.shape)
        fresh = (f"{info.name}.{axis}" for axis in range(len(shape)))
        _write(
            info, tuple(new if isinstance(old, str) else old for old, new in zip(shape, fresh, strict=True))
        )
    # Shapes of inner tensors are inferred anew by whoever needs them, and would carry the old names.
    del model.graph.value_info[:]
    return True


def _ranges(name: str, axis: int, profiles: Sequence[Profile]) -> list[tuple[int, ...]]:
    return [
        (item.min[axis], item.opt[axis], item.max[axis])
        for profile in profiles
        for item in profile
        if item.name == name
    ]


def _write(info: Any, shape: Shape) -> None:
    for dim, length in zip(info.type.tensor_type.shape.dim, shape, strict=True):
        if isinstance(length, str):
            dim.dim_param = length
