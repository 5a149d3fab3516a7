"""Signatures: what tensors a model takes and gives.

A shape's entry is an ``int`` where the axis is fixed and a ``str`` where it is free; the text of a free
axis is its symbol in the model, for people to read, and binds nothing: exporters reuse one symbol for
axes that differ. Where `Signature.batch_axis` is 0 the first axis of every tensor counts rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensorq.errors import InputError
from tensorq.wire import DTYPES as WIRE_DTYPES
from tensorq.wire import MAX_RANK

Shape = tuple[int | str, ...]

DTYPES = frozenset(np.dtype(text).name for text in WIRE_DTYPES)
"""numpy names of the dtypes that a tensor may have."""


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """Name, dtype and shape of one input or output.

    Attributes:
        name: the tensor's name in the model.
        dtype: numpy name of the dtype, such as ``float32``.
        shape: one entry an axis: an int where fixed, a str where free.
    """

    name: str
    dtype: str
    shape: Shape

    def admits(self, shape: Sequence[int]) -> bool:
        """Tells whether an array of ``shape`` has this rank and these fixed axes."""
        return len(shape) == len(self.shape) and all(
            isinstance(want, str) or want == got for want, got in zip(self.shape, shape, strict=True)
        )

    def to_dict(self) -> dict[str, Any]:
        """A form that JSON carries; `from_dict` takes it back."""
        return {"name": self.name, "dtype": self.dtype, "shape": list(self.shape)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> TensorSpec:
        """The inverse of `to_dict`.

        Raises:
            KeyError, TypeError, ValueError: it is not what `to_dict` writes.
        """
        name, dtype, shape = data["name"], data["dtype"], data["shape"]
        if not isinstance(name, str) or not name:
            raise ValueError(f"tensor name {name!r}: expected text")
        if not isinstance(dtype, str) or dtype not in DTYPES:
            raise ValueError(f"tensor {name!r}: dtype {dtype!r}, expected one of {', '.join(sorted(DTYPES))}")
        if not isinstance(shape, list) or len(shape) > MAX_RANK or not all(map(_is_axis, shape)):
            raise ValueError(f"tensor {name!r}: shape {shape!r}, expected a list of lengths and symbols")
        return cls(name, dtype, tuple(shape))

    def __str__(self) -> str:
        return f"{self.name}: {self.dtype}[{', '.join(map(str, self.shape))}]"


@dataclass(frozen=True, slots=True)
class Signature:
    """The inputs and outputs of a model.

    Attributes:
        inputs: the inputs, in the model's order.
        outputs: the outputs, in the model's order.
        batch_axis: 0 where the first axis of every tensor counts rows; None for a model without a batch
            axis, whose jobs are one row each and run one by one.
    """

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    batch_axis: int | None = 0

    @property
    def fixed_rows(self) -> int | None:
        """Rows of the one batch size that the model takes, or None where it takes any number."""
        first = self.inputs[0].shape[0] if self.batch_axis == 0 else None
        return first if isinstance(first, int) else None

    def to_dict(self) -> dict[str, Any]:
        """A form that JSON carries; `from_dict` takes it back."""
        return {
            "inputs": [spec.to_dict() for spec in self.inputs],
            "outputs": [spec.to_dict() for spec in self.outputs],
            "batch_axis": self.batch_axis,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Signature:
        """The inverse of `to_dict`.

        Raises:
            KeyError, TypeError, ValueError: it is not what `to_dict` writes.
        """
        inputs = tuple(TensorSpec.from_dict(spec) for spec in data["inputs"])
        outputs = tuple(TensorSpec.from_dict(spec) for spec in data["outputs"])
        batch_axis = data["batch_axis"]
        if batch_axis is not None and (type(batch_axis) is not int or batch_axis != 0):
            raise ValueError(f"batch axis {batch_axis!r}: expected 0 or null")
        if not inputs or (batch_axis == 0 and not all(spec.shape for spec in inputs)):
            raise ValueError("expected at least one input, and a batch axis in each where there is one")
        return cls(inputs, outputs, batch_axis)

    def rows(self, tensors: Mapping[str, np.ndarray]) -> int:
        """Rows of a job with these inputs, which `conform` has accepted."""
        return tensors[self.inputs[0].name].shape[0] if self.batch_axis == 0 else 1

    def conform(self, tensors: Mapping[str, np.ndarray], *, cast: bool = False) -> dict[str, np.ndarray]:
        """Checks a job's inputs and returns them in the signature's order.

        Args:
            tensors: one array an input. With a batch axis the first axis is any number of rows >= 1, the
                same in all inputs, also for a model of a fixed batch size.
            cast: convert a dtype where every value survives it.

        Returns:
            The same arrays, cast where asked for; not copied otherwise.

        Raises:
            InputError: names the input, what came, what was expected and what to do.
        """
        names = [spec.name for spec in self.inputs]
        if unknown := [name for name in tensors if name not in names]:
            raise InputError(f"unknown input {unknown[0]!r}: the model's inputs are {', '.join(names)}")
        if missing := [name for name in names if name not in tensors]:
            raise InputError(f"missing input {missing[0]!r}: the model's inputs are {', '.join(names)}")
        accepted = {spec.name: self._conform_one(spec, tensors[spec.name], cast) for spec in self.inputs}
        if self.batch_axis == 0:
            counts = {name: array.shape[0] for name, array in accepted.items()}
            if len(set(counts.values())) > 1:
                raise InputError(f"inputs differ in rows: {counts}; all must have the same first axis")
        return accepted

    def _conform_one(self, spec: TensorSpec, array: np.ndarray, cast: bool) -> np.ndarray:
        if not isinstance(array, np.ndarray):
            raise InputError(f"input {spec.name!r}: got {type(array).__name__}, expected a numpy array")
        want = np.dtype(spec.dtype)
        # Not all that cannot be sent has an order of bytes.
        if array.dtype.kind not in "biufc" or array.dtype.newbyteorder("=") != want:
            array = _cast(spec, array, want, cast)
        batched = self.batch_axis == 0
        shape: Shape = ("rows", *spec.shape[1:]) if batched else spec.shape
        if not TensorSpec(spec.name, spec.dtype, shape).admits(array.shape):
            raise InputError(
                f"input {spec.name!r}: got shape {_show(array.shape)}, expected {_show(shape)}"
                + _shape_advice(array.shape, shape, batched)
            )
        if 0 in array.shape:
            what = "zero rows" if batched and array.shape[0] == 0 else "an axis of length 0"
            raise InputError(f"input {spec.name!r}: got shape {_show(array.shape)}, {what}; nothing to run")
        return array


def _is_axis(entry: object) -> bool:
    return isinstance(entry, str) or (type(entry) is int and entry >= 0)


def _cast(spec: TensorSpec, array: np.ndarray, want: np.dtype, cast: bool) -> np.ndarray:
    head = f"input {spec.name!r}: got dtype {array.dtype}, expected {want}"
    if array.dtype.kind not in "biufc":
        raise InputError(f"{head}; only numbers and bools can be sent")
    if not cast:
        raise InputError(f"{head}; convert it with .astype('{want}') or pass cast=True")
    converted = _converted(array, want)
    if converted is None:
        raise InputError(f"{head}; cast=True was given, but the values do not survive the conversion")
    return converted


def _converted(array: np.ndarray, want: np.dtype) -> np.ndarray | None:
    """The array in another dtype, or None where that would change a value."""
    to_real = want.kind != "c"
    if array.dtype.kind == "c" and to_real:
        return None
    with np.errstate(all="ignore"):
        converted = array.astype(want)
        back = (converted if to_real or array.dtype.kind == "c" else converted.real).astype(array.dtype)
    same = np.array_equal(back, array, equal_nan=array.dtype.kind in "fc")
    if want.kind in "iu" and array.dtype.kind in "iu":
        # A value that wraps round comes back unharmed, with another sign in between.
        same = same and np.array_equal(converted < 0, array < 0)
    if want.kind in "fc" and array.dtype.kind in "iu":
        # Infinity comes back as the lowest integer, which may be what was given.
        same = same and bool(np.isfinite(converted).all())
    return converted if same else None


def _show(shape: Sequence[int | str]) -> str:
    return "(" + ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "") + ")"


def _shape_advice(got: Sequence[int], want: Shape, batched: bool) -> str:
    if batched and TensorSpec("", "", want[1:]).admits(got):
        return "; one row needs a leading axis: array[None]"
    return ""
