"""Profile: the shapes, min, opt and max, that an engine was tuned for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class InputRange:
    """The shapes of one input in a profile, the batch axis included.

    Attributes:
        name: the input.
        min: the least length of each axis.
        opt: the length of each axis that the engine is tuned for.
        max: the greatest length of each axis.
    """

    name: str
    min: tuple[int, ...]
    opt: tuple[int, ...]
    max: tuple[int, ...]

    def admits(self, shape: Sequence[int]) -> bool:
        """Tells whether ``shape`` has this rank and lies within min and max on every axis."""
        return len(shape) == len(self.min) and all(
            low <= got <= high for low, got, high in zip(self.min, shape, self.max, strict=True)
        )

    def __str__(self) -> str:
        pairs = zip(self.min, self.max, strict=True)
        axes = (str(low) if low == high else f"{low}..{high}" for low, high in pairs)
        return f"{self.name} [{', '.join(axes)}]"


@dataclass(frozen=True, slots=True)
class Profile:
    """The shapes of all inputs that have a free axis.

    Attributes:
        ranges: one entry an input; an input that is absent has fixed axes only.
    """

    ranges: tuple[InputRange, ...]

    @classmethod
    def of(cls, **inputs: tuple[Sequence[int], Sequence[int], Sequence[int]]) -> Profile:
        """Builds a profile from one ``(min, opt, max)`` an input."""
        return cls(tuple(InputRange(name, *map(tuple, shapes)) for name, shapes in inputs.items()))

    def __iter__(self) -> Iterator[InputRange]:
        return iter(self.ranges)

    def admits(self, shapes: Mapping[str, Sequence[int]]) -> bool:
        """Tells whether a tile of ``shapes``, the batch axis included, lies within this profile."""
        return all(item.name in shapes and item.admits(shapes[item.name]) for item in self.ranges)

    def rows(self) -> tuple[int, int, int]:
        """Returns min, opt and max of the first axis; only for models whose batch axis is 0."""
        first = self.ranges[0]
        return first.min[0], first.opt[0], first.max[0]

    def __str__(self) -> str:
        return " ".join(map(str, self.ranges))
