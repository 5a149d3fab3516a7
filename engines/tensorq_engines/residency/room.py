"""Room: how much memory there is for models, and the charge that it is held against. Pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from tensorq_engines.base.footprint import Footprint
from tensorq_engines.residency.account import Account, charge


@dataclass(frozen=True, slots=True)
class Room:
    """What models may take, and how lanes share what they take.

    Attributes:
        budget_bytes: the most that an `Account.total_bytes` may be; None for no limit.
        unaccounted_bytes: the part of the budget that models gave back and the driver did not.
        pinned_limit_bytes: the most that `Account.pinned_bytes` may be; None for no limit.
        lanes: how many run the models.
        slots: staging areas of a lane.
        shared: whether a lane's models share one arena.
    """

    budget_bytes: int | None
    unaccounted_bytes: int
    pinned_limit_bytes: int | None
    lanes: int
    slots: int
    shared: bool

    def charge(self, footprints: Collection[Footprint]) -> Account:
        """Returns what models of these footprints need, all loaded at once."""
        return charge(footprints, self.lanes, shared=self.shared, slots=self.slots)

    @property
    def limit_bytes(self) -> int | None:
        """What is left of the budget for models."""
        return None if self.budget_bytes is None else max(self.budget_bytes - self.unaccounted_bytes, 0)

    def holds(self, footprints: Collection[Footprint]) -> bool:
        """Tells whether models of these footprints can all be loaded at once."""
        account, limit = self.charge(footprints), self.limit_bytes
        return (limit is None or account.total_bytes <= limit) and (
            self.pinned_limit_bytes is None or account.pinned_bytes <= self.pinned_limit_bytes
        )
