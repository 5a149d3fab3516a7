"""Run: a validated job on its way through tiles."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tensorq_engines import TileFailed
from tensorq_worker.broker import Claimed
from tensorq_worker.tiles.fit import Fit

# Held for the sum alone: without it two lanes that end at once would both find every row there.
_counting = threading.Lock()


class Run:
    """One job's inputs, and its outputs as they come.

    Attributes:
        job: the lease that it runs under.
        tensors: its inputs, read-only, over the payload's memory.
        rows: rows along the batch axis; 1 for a model without one.
        row_shapes: per input the shape of a row: what it is staged by; padded where it has a fit.
        fit: how its rows lie in their bucket; None for a model without buckets.
        dropped: its results are not wanted any more (failed, stopped or lost).
        stopped: RQ's stop-job was asked for it.
        started_s: Unix time in seconds of its first launch; 0 before.
        late_s: what a tile of it took, in seconds, where that exceeded its timeout; else 0.
        since_ms: when it was made, on `time.monotonic`'s clock.
    """

    __slots__ = (
        "_done",
        "_outputs",
        "dropped",
        "fit",
        "job",
        "late_s",
        "row_shapes",
        "rows",
        "since_ms",
        "started_s",
        "stopped",
        "tensors",
    )

    def __init__(
        self,
        job: Claimed,
        tensors: Mapping[str, np.ndarray],
        rows: int,
        row_shapes: tuple[tuple[int, ...], ...],
        fit: Fit | None = None,
    ) -> None:
        self.job = job
        self.tensors = tensors
        self.rows = rows
        self.row_shapes = row_shapes
        self.fit = fit
        self.dropped = False
        self.stopped = False
        self.started_s = 0.0
        self.late_s = 0.0
        self.since_ms = 1000 * time.monotonic()
        self._done: dict[int, int] = {}
        self._outputs: dict[str, np.ndarray[Any, Any]] = {}

    def staged_ms(self) -> float:
        """For how long the job has been here: its age where the producer's clock is ahead of ours."""
        return 1000 * time.monotonic() - self.since_ms

    def collect(
        self, start: int, stop: int, outputs: Mapping[str, np.ndarray], names: Sequence[str]
    ) -> dict[str, np.ndarray] | None:
        """Takes the outputs of rows ``start`` to ``stop``, one array an output, each with those rows.

        Lanes may bring parts of one job at the same time.

        Returns:
            All outputs to whoever brings the last rows, else None. A job of one part gets the very arrays
            given; a job of several gets arrays of its own, and the given ones are copied.

        Raises:
            TileFailed: an output's rows are of another shape than those of the job's other parts.
        """
        if stop - start == self.rows:
            return {name: outputs[name] for name in names}
        for name in names:
            array, whole = outputs[name], self._outputs.get(name)
            if whole is None:
                # In one step, or what another lane has put there meanwhile would be lost.
                made = np.empty((self.rows, *array.shape[1:]), array.dtype)
                whole = self._outputs.setdefault(name, made)
            if array.shape[1:] != whole.shape[1:]:
                # Numpy would spread rows of one place over those of many.
                raise TileFailed(
                    f"output {name!r} came with shape {list(array.shape)} for rows {start} to {stop} of a "
                    f"job whose other tiles make it {list(whole.shape)}: its length depends on the data, so "
                    "parts do not go together; submit fewer rows a job, no more than the largest tile"
                )
            whole[start:stop] = array
        with _counting:
            # By place: rows of a tile that failed after this are brought again.
            self._done[start] = stop - start
            return self._outputs if sum(self._done.values()) == self.rows else None
