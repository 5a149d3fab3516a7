"""Ledger: what engines and lanes say that they have taken, against the driver's account. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from tensorq_engines.residency.account import Account

TOLERANCE_BYTES = 16 * 1024 * 1024
TOLERANCE = 0.05


@dataclass(frozen=True, slots=True)
class Reading:
    """Two accounts of one moment.

    Attributes:
        taken_bytes: by what engines and lanes say.
        used_bytes: by the driver, other users of the memory included; None where nothing can tell.
    """

    taken_bytes: int
    used_bytes: int | None


@dataclass(frozen=True, slots=True)
class Integrity:
    """The account of a pool, and how it compares with the driver's.

    Attributes:
        charged: what is promised to models.
        budget_bytes: what there is for them; None for no limit.
        unaccounted_bytes: the part of it that evicted models gave back and the driver did not.
        taken_bytes: what engines and lanes have taken.
        pinned_bytes: page-locked bytes that lanes have taken.
        driver_bytes: what the driver shows beyond the baseline; None where nothing can tell.
    """

    charged: Account
    budget_bytes: int | None
    unaccounted_bytes: int
    taken_bytes: int
    pinned_bytes: int
    driver_bytes: int | None

    @property
    def drift_bytes(self) -> int:
        """What the driver shows and engines and lanes do not; less than 0 the other way round."""
        return 0 if self.driver_bytes is None else self.driver_bytes - self.taken_bytes

    @property
    def agrees(self) -> bool:
        """Whether the accounts differ by no more than 16 MiB or 5 % of what the driver shows."""
        return abs(self.drift_bytes) <= max(TOLERANCE_BYTES, TOLERANCE * (self.driver_bytes or 0))


class Ledger:
    """Follows the drift between the two accounts, from a baseline on.

    What the driver keeps is never added up over evictions: it is no more than the drift is now. Small
    engines come and go inside what the driver has set aside, and would add up to memory that nobody holds.
    """

    def __init__(self) -> None:
        self._baseline_bytes: int | None = None
        self._drift_bytes = 0

    def rebase(self, reading: Reading, unaccounted_bytes: int = 0) -> None:
        """Takes what the driver shows now, models and ``unaccounted_bytes`` apart, as none of the models'."""
        if reading.used_bytes is not None:
            self._baseline_bytes = reading.used_bytes - reading.taken_bytes - unaccounted_bytes
            self._drift_bytes = unaccounted_bytes

    def driver_bytes(self, reading: Reading) -> int | None:
        """Returns what the driver shows beyond the baseline; the first reading is one."""
        if self._baseline_bytes is None:
            self.rebase(reading)
        if reading.used_bytes is None or self._baseline_bytes is None:
            return None
        return reading.used_bytes - self._baseline_bytes

    def settle(self, reading: Reading, unaccounted_bytes: int, *, evicted: bool = False) -> int:
        """Returns what is unaccounted now.

        It falls with the drift whenever the driver gave memory back meanwhile. It rises with the drift over
        an eviction only: at other times what the driver shows is the runtime's, or another process's.

        Args:
            reading: the accounts now.
            unaccounted_bytes: what was unaccounted so far.
            evicted: the last reading was just before an eviction, and this one is just after it.
        """
        driver_bytes = self.driver_bytes(reading)
        if driver_bytes is None:
            return unaccounted_bytes
        drift = driver_bytes - reading.taken_bytes
        change, self._drift_bytes = drift - self._drift_bytes, drift
        if not evicted:
            change = min(change, 0)
        return max(min(unaccounted_bytes + change, drift), 0)
