"""Tile: one batch of a ladder size, from rows to results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tensorq.signature import Signature
from tensorq_worker.tiles.run import Run
from tensorq_worker.tiles.stage import Part


@dataclass(slots=True)
class Tile:
    """Parts of jobs that run together.

    Attributes:
        model: the model's name.
        signature: the model's signature.
        parts: whose rows, in order.
        size: rows that the engine runs, the padding included.
        alone: nothing else may run in this process meanwhile.
        rehearsal: its jobs are nobody's; they go the whole way and nothing is counted.
    """

    model: str
    signature: Signature
    parts: Sequence[Part]
    size: int
    alone: bool = False
    rehearsal: bool = False
    rows: int = field(init=False)

    def __post_init__(self) -> None:
        self.rows = sum(part.rows for part in self.parts)

    @property
    def padding(self) -> int:
        """Rows added to fill the tile."""
        return self.size - self.rows if self.signature.batch_axis == 0 else 0

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of every input, the batch axis included."""
        lead = (self.size,) if self.signature.batch_axis == 0 else ()
        row_shapes = self.parts[0].run.row_shapes
        return {
            spec.name: (*lead, *shape) for spec, shape in zip(self.signature.inputs, row_shapes, strict=True)
        }

    def fill(self, inputs: Mapping[str, np.ndarray]) -> None:
        """Copies the rows into ``inputs``, a slot's views; padding repeats the last valid row.

        Rows that are shorter than their bucket are filled up, each by itself.
        """
        fit = self.parts[0].run.fit
        for name, view in inputs.items():
            if self.signature.batch_axis is None:
                array = self.parts[0].run.tensors[name]
                if fit is None:
                    np.copyto(view, array)
                else:
                    fit.place(name, array, view)
                continue
            rows = [part.run.tensors[name][part.start : part.stop] for part in self.parts]
            if fit is None or all(array.shape[1:] == view.shape[1:] for array in rows):
                np.concatenate(rows, out=view[: self.rows])
            else:
                position = 0
                for array in rows:
                    fit.place(name, array, view[position : position + len(array)])
                    position += len(array)
            if self.rows < self.size:
                view[self.rows :] = view[self.rows - 1]

    def collect(self, outputs: Mapping[str, np.ndarray]) -> list[tuple[Run, dict[str, np.ndarray]]]:
        """Hands each job its rows of ``outputs``, padding stripped.

        Outputs with a crop rule are cut back to what the row's own length is worth.

        Returns:
            Jobs that have all their rows now. Their arrays may view ``outputs``: pack or copy them before
            the slot is released.

        Raises:
            TileFailed: a crop rule keeps more than an output has.
        """
        names = [spec.name for spec in self.signature.outputs]
        if self.signature.batch_axis is None:
            run = self.parts[0].run
            if run.dropped:
                return []
            mine = {name: outputs[name] for name in names}
            return [(run, mine if run.fit is None else run.fit.cut(mine))]
        complete, position = [], 0
        for part in self.parts:
            end = position + part.rows
            mine = {name: outputs[name][position:end] for name in names}
            position = end
            if part.run.dropped:
                continue
            if part.run.fit is not None:
                mine = part.run.fit.cut(mine)
            whole = part.run.collect(part.start, part.stop, mine, names)
            if whole is not None:
                complete.append((part.run, whole))
        return complete
