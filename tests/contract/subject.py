"""What a kind of engine supplies for its contract to be tested."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from tensorq_engines import Engine, Lane
from tensorq_engines.base.admission import Shapes

Tile = dict[str, np.ndarray]


@dataclass(frozen=True)
class Case:
    """A model of this kind and what it must give.

    Attributes:
        engine: loaded.
        rows: a batch size that it runs.
        make: inputs for a number of rows and a seed; each seed gives other results.
        want: the right outputs, bit by bit.
        outside: shapes that no profile of the model admits.
        outside_words: what the refusal says of them, as a pattern.
    """

    engine: Engine
    rows: int
    make: Callable[[int, int], Tile]
    want: Callable[[Tile], Mapping[str, np.ndarray]]
    outside: Shapes | None = None
    outside_words: str = ""

    def tile(self, seed: int = 0, rows: int | None = None) -> Tile:
        """Inputs of `rows` rows."""
        return self.make(self.rows if rows is None else rows, seed)

    def shapes(self, rows: int | None = None) -> Shapes:
        """The shapes of such a tile."""
        return {name: array.shape for name, array in self.tile(0, rows).items()}

    def check(self, outputs: Mapping[str, np.ndarray], tile: Tile) -> None:
        """Fails unless these are the tile's outputs."""
        want = self.want(tile)
        assert list(outputs) == list(want)
        for name, array in want.items():
            np.testing.assert_array_equal(outputs[name], array, err_msg=name)


class Subject(ABC):
    """A kind of engine. Its models are closed by whoever made it."""

    kind: str

    @abstractmethod
    def plain(self) -> Case:
        """A model that is quick, anew with each call; with `Case.outside`."""

    @abstractmethod
    def slow(self) -> Case:
        """A model whose tiles take milliseconds, so that something can happen meanwhile."""

    @abstractmethod
    def new_lane(self, slot_count: int = 2) -> Lane:
        """A lane; whoever asks for it closes it."""


def fill(lane: Lane, case: Case, tile: Tile):
    """A slot that holds the tile."""
    slot = lane.acquire(case.engine, {name: array.shape for name, array in tile.items()})
    assert slot is not None
    for name, array in tile.items():
        slot.inputs[name][...] = array
    return slot


def garbage(tile: Tile) -> Tile:
    """What must not reach anybody's results."""
    return {
        name: np.full_like(array, np.nan if array.dtype.kind == "f" else 7) for name, array in tile.items()
    }
