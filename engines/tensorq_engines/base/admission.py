"""Admission: which shapes a model runs, and the refusal that says why not. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tensorq.signature import Signature
from tensorq_engines.base.errors import ShapeRefused
from tensorq_engines.base.profile import Profile

Shapes = Mapping[str, tuple[int, ...]]


def admit(model: str, signature: Signature, profiles: Sequence[Profile], shapes: Shapes) -> None:
    """Returns if the model runs a tile of ``shapes``, one an input, the batch axis included.

    Raises:
        ShapeRefused: names the input or the profiles, what came and what was expected.
    """
    head = f"model {model!r}"
    names = [spec.name for spec in signature.inputs]
    if set(shapes) != set(names):
        raise ShapeRefused(f"{head}: got shapes for {sorted(shapes)}, expected exactly {names}")
    for spec in signature.inputs:
        shape = shapes[spec.name]
        if not spec.admits(shape) or 0 in shape:
            raise ShapeRefused(
                f"{head}: got shape {list(shape)} for {spec}; fixed axes must match and none be empty"
            )
    rows = {name: shapes[name][0] for name in names} if signature.batch_axis == 0 else {}
    if len(set(rows.values())) > 1:
        raise ShapeRefused(f"{head}: inputs differ in rows, {rows}; one tile has one number of rows")
    if profiles and not any(profile.admits(shapes) for profile in profiles):
        raise ShapeRefused(
            f"{head}: got {describe(shapes)}, outside all profiles, which take "
            f"{' or '.join(map(str, profiles))}; send shapes within them or widen a [[profile]] in model.toml"
        )


def sizes_for(
    model: str, signature: Signature, profiles: Sequence[Profile], ladder: Sequence[int], row_shapes: Shapes
) -> tuple[int, ...]:
    """Returns the ladder's sizes that the model runs for rows of these shapes.

    Args:
        model: its name, for messages.
        signature: the model's.
        profiles: the model's.
        ladder: the model's.
        row_shapes: the shape of one row of each input, without the batch axis; for a model without a
            batch axis the whole shape.

    Raises:
        ShapeRefused: no size is admitted.
    """
    refusal: ShapeRefused | None = None
    sizes = []
    for size in ladder:
        try:
            admit(model, signature, profiles, tile_shapes(signature, row_shapes, size))
        except ShapeRefused as exc:
            refusal = exc
        else:
            sizes.append(size)
    if not sizes and refusal is not None:
        raise refusal
    return tuple(sizes)


def tile_shapes(signature: Signature, row_shapes: Shapes, rows: int) -> dict[str, tuple[int, ...]]:
    """Returns the shapes of a tile of ``rows`` rows."""
    lead = (rows,) if signature.batch_axis == 0 else ()
    return {name: (*lead, *shape) for name, shape in row_shapes.items()}


def describe(shapes: Shapes) -> str:
    """Returns shapes as people read them, such as ``x [8, 3, 48, 320]``."""
    return " ".join(f"{name} {list(shape)}" for name, shape in shapes.items())
