"""Inputs: what the models cost, measured on a GPU and read from a file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from tensorq_engines import Footprint, Residents


@dataclass(frozen=True, slots=True)
class Model:
    """One model of a simulation.

    Attributes:
        name: its name.
        footprint: its memory.
        load_ms: a load of it, warm cache.
        tile_ms: a tile by its size; the sizes are its ladder.
        estimated: which of these are not measured.
    """

    name: str
    footprint: Footprint
    load_ms: float
    tile_ms: Mapping[int, float]
    estimated: Sequence[str] = ()

    @property
    def ladder(self) -> tuple[int, ...]:
        return tuple(sorted(self.tile_ms))

    @property
    def row_ms(self) -> float:
        """A row's part of a full tile of the largest size."""
        return self.tile_ms[self.ladder[-1]] / self.ladder[-1]


def read(file: Path) -> list[Model]:
    """Reads the models of a file in ops/bench/results."""
    found = json.loads(file.read_text(encoding="utf-8"))["models"]
    return [
        Model(
            name,
            Footprint(**entry["footprint"]),
            entry["load_ms"],
            {int(size): time_ms for size, time_ms in entry["tile_ms"].items()},
            entry.get("estimated", ()),
        )
        for name, entry in found.items()
    ]


def budget_for(models: Sequence[Model], count: int, lanes: int) -> int:
    """The largest budget in bytes that never holds more than ``count`` models, each with its own arena."""
    needs = Residents(None, lanes, shared=False)
    for model in models:
        needs.add(model.name, model.footprint)
    names = [model.name for model in models]
    return min(needs.predict(some).total_bytes for some in combinations(names, count + 1)) - 1
