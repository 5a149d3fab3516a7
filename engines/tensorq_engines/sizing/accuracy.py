"""Accuracy: how far estimates were off, over the plans whose sizes are known.

``accuracy.json`` beside this file is written by `make bench-estimate`, never by hand.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

FILE = "accuracy.json"


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Estimated against known activations of the plans of one TensorRT.

    Attributes:
        tensorrt: name and version.
        where: the GPU that the plans were built on, or that there was none.
        plans: how many there are.
        low: the least of estimate over known, less 1: -0.2 is a fifth too little.
        high: the greatest.
        fitted: whether the rules of the estimate were chosen with these plans in view, so that others may
            well be further off.
    """

    tensorrt: str
    where: str
    plans: int
    low: float
    high: float
    fitted: bool

    def __str__(self) -> str:
        return (
            f"activations {self.low:+.0%} to {self.high:+.0%} off in {self.plans} plans of {self.tensorrt}, "
            f"{self.where}{', by which its rules were chosen' if self.fitted else ''}"
        )


def summarize(records: Iterable[Mapping[str, Any]]) -> tuple[Accuracy, ...]:
    """Returns one `Accuracy` a TensorRT and place, in the order of ``records``, those of the file."""
    errors: dict[tuple[str, str, bool], list[float]] = {}
    for record in records:
        key = (record["tensorrt"], record["where"], record["fitted"])
        errors.setdefault(key, []).append(record["error"])
    return tuple(
        Accuracy(tensorrt, where, len(found), min(found), max(found), fitted)
        for (tensorrt, where, fitted), found in errors.items()
    )


def known_accuracy() -> tuple[Accuracy, ...]:
    """Returns how far estimates were off when this was last measured."""
    return summarize(_records())


def context_bytes() -> int:
    """Returns the most that a context of a known plan keeps for itself, which no graph tells."""
    return max(int(record["context_bytes"]) for record in _records())


@cache
def _records() -> tuple[Mapping[str, Any], ...]:
    text = files(__package__).joinpath(FILE).read_text(encoding="utf-8")
    return tuple(json.loads(text)["plans"])
