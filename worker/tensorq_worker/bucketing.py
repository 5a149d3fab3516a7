"""Bucketing: which bucket a job's rows go to. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tensorq.errors import InputError
from tensorq.signature import Signature
from tensorq_engines import Buckets, ShapeRefused
from tensorq_worker.tiles import Fit


class Bucketing:
    """The buckets of one model, looked up once.

    Args:
        model: the model's name, for messages.
        signature: the model's.
        buckets: what `tensorq_engines.check_buckets` finds nothing wrong with.
    """

    def __init__(self, model: str, signature: Signature, buckets: Sequence[Buckets]) -> None:
        self._model = model
        self._names = [spec.name for spec in signature.inputs]
        self._first = 1 if signature.batch_axis == 0 else 0
        self._places = [
            (item, [(spec.name, axis) for spec, axis in item.places(signature)]) for item in buckets
        ]
        self._fills = {
            spec.name: np.dtype(spec.dtype).type(item.fill_of(spec.name))
            for item in buckets
            for spec, _ in item.places(signature)
        }

    def fit(self, tensors: Mapping[str, np.ndarray]) -> Fit:
        """Returns how a job's rows are padded.

        Args:
            tensors: its inputs, which the signature has accepted.

        Raises:
            InputError: axes that are padded together differ in length.
            ShapeRefused: a row is longer than the largest bucket.
        """
        shapes = {name: list(tensors[name].shape) for name in self._names}
        cuts: dict[str, list[tuple[int, int]]] = {}
        for item, places in self._places:
            length = self._length(item.axis, places, tensors)
            bucket = item.bucket(length)
            if bucket is None:
                name, axis = places[0]
                raise ShapeRefused(
                    f"model {self._model!r}: got shape {list(tensors[name].shape)} for input {name!r}, "
                    f"{length} long on axis {axis} ({item.axis}), and the largest bucket is "
                    f"{item.lengths[-1]}; send shorter rows, or add a length to [buckets] in model.toml"
                )
            for name, axis in places:
                shapes[name][axis] = bucket
            for crop in item.crops:
                cuts.setdefault(crop.output, []).append((crop.axis, crop.places(length)))
        return Fit(
            tuple(tuple(shape[self._first :]) for shape in shapes.values()),
            self._fills,
            {name: tuple(pairs) for name, pairs in cuts.items()},
        )

    def _length(self, axis: str, places: Sequence[tuple[str, int]], tensors: Mapping[str, np.ndarray]) -> int:
        lengths: dict[str, int] = {f"{name}.{place}": tensors[name].shape[place] for name, place in places}
        if len(set(lengths.values())) > 1:
            raise InputError(
                f"axes {axis!r} differ in length: {lengths}; they are padded together, so send one length, "
                "or name them one by one in [buckets], as INPUT.AXIS"
            )
        return next(iter(lengths.values()))
