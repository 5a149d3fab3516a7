"""Decision: what can be done about a model that is wanted."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Fits:
    """There is room, or it is loaded already."""


@dataclass(frozen=True, slots=True)
class Evict:
    """There is room once others have left.

    Attributes:
        victims: names of the models to evict, all of them, in this order.
    """

    victims: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Later:
    """There is no room now, and there can be.

    Attributes:
        reason: what stands in the way.
        until_s: when it will not any more, on the caller's clock, running tiles apart; None where only an
            event can tell: a tile or a load that ends.
        draining: models that can make room once their running tiles have ended, if no others are begun; empty
            where more than that stands in the way.
    """

    reason: str
    until_s: float | None = None
    draining: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Never:
    """There is no room as things are configured.

    Attributes:
        message: the numbers, and what to change.
    """

    message: str


Decision = Fits | Evict | Later | Never
