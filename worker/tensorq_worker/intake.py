"""Intake: decodes and checks each job alone, so that a bad one fails alone. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tensorq import wire
from tensorq.errors import InputError, WireError
from tensorq.names import parse_queue
from tensorq.signature import Signature
from tensorq_engines import Buckets
from tensorq_worker.broker import Claimed
from tensorq_worker.bucketing import Bucketing
from tensorq_worker.tiles import Fit, Run

RowShapes = tuple[tuple[int, ...], ...]
_KEPT_LAYOUTS = 1024


@dataclass(frozen=True, slots=True)
class _Kind:
    rows: int
    row_shapes: RowShapes
    fit: Fit | None


class Intake:
    """Accepts the jobs of one model.

    A payload laid out like one that was accepted before has the same names, dtypes and shapes, so it is
    only viewed, not checked again.

    Args:
        model: the model's name.
        signature: what its jobs must conform to.
        buckets: the lengths that free axes are padded up to, checked.
    """

    def __init__(self, model: str, signature: Signature, buckets: Sequence[Buckets] = ()) -> None:
        self.model = model
        self.signature = signature
        self._bucketing = Bucketing(model, signature, buckets) if buckets else None
        self._kinds: dict[wire.Layout, _Kind] = {}

    def accept(self, job: Claimed) -> Run:
        """Returns the job with its inputs as read-only arrays that view its payload.

        Raises:
            WireError: the payload is gone or is none.
            InputError: the tensors do not fit the signature, or the job waits on another model's queue.
            ShapeRefused: a row is longer than the largest bucket.
        """
        if job.model != self.model:
            raise InputError(
                f"job is marked for model {job.model!r} but waits on queue {job.queue!r} "
                f"of model {parse_queue(job.queue)[0]!r}; submit it again"
            )
        if job.payload is None:
            raise WireError(
                "the job's payload is not in Redis: it expired, was deleted or was evicted; submit it again"
            )
        layout = wire.recognise(job.payload)
        if layout is not None and (kind := self._kinds.get(layout)) is not None:
            return Run(job, layout.view(job.payload), kind.rows, kind.row_shapes, kind.fit)
        tensors = self.signature.conform(wire.unpack(job.payload))
        fit = self._bucketing.fit(tensors) if self._bucketing is not None else None
        shapes = self._row_shapes(tensors) if fit is None else fit.row_shapes
        kind = _Kind(self.signature.rows(tensors), shapes, fit)
        layout = wire.recognise(job.payload)
        if layout is not None:
            if len(self._kinds) >= _KEPT_LAYOUTS:
                self._kinds.clear()
            self._kinds[layout] = kind
        return Run(job, tensors, kind.rows, kind.row_shapes, kind.fit)

    def _row_shapes(self, tensors: dict[str, np.ndarray]) -> RowShapes:
        first = 1 if self.signature.batch_axis == 0 else 0
        return tuple(tensors[spec.name].shape[first:] for spec in self.signature.inputs)
