"""Cost tables from the files of results."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LANES = "_graph_against_eager"


@dataclass(frozen=True, slots=True)
class MeasuredCosts:
    """What tiles of one model and shape of a row took.

    Attributes:
        file: where that is from.
        model: the model's name.
        shape: of a row, such as ``3x48x320``; empty where the file does not say.
        costs_ms: by size.
    """

    file: str
    model: str
    shape: str
    costs_ms: Mapping[int, float]


def read_tables(folder: Path) -> list[MeasuredCosts]:
    """Returns the tables of all ``h200-costs-*.json``; where there is none, the tile times of a lane bench.

    Raises:
        FileNotFoundError: there are neither.
    """
    if files := sorted(folder.glob("h200-costs-*.json")):
        return [table for file in files for table in _of_costs(file)]
    if files := sorted(folder.glob("h200-lanes-*.json")):
        return [table for file in files for table in _of_lanes(file)]
    raise FileNotFoundError(
        f"{folder} has neither h200-costs-*.json nor h200-lanes-*.json; make one with ops/bench/gpu/costs.py"
    )


def _of_costs(file: Path) -> list[MeasuredCosts]:
    models = json.loads(file.read_text(encoding="utf-8"))["costs_ms"]
    return [
        MeasuredCosts(file.name, model, shape, _by_size(costs))
        for model, shapes in models.items()
        for shape, costs in shapes.items()
    ]


def _of_lanes(file: Path) -> list[MeasuredCosts]:
    data: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return [
        MeasuredCosts(
            file.name,
            key.removesuffix(LANES),
            "",
            _by_size({size: times["lane_us"] / 1000 for size, times in sizes.items()}),
        )
        for key, sizes in data.items()
        if key.endswith(LANES) and "error" not in sizes
    ]


def _by_size(costs: Mapping[str, float]) -> dict[int, float]:
    return {int(size): float(costs[size]) for size in sorted(costs, key=int)}
