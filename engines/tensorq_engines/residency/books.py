"""Books: the engines and lanes of a pool, and what they have taken beside what the driver shows."""

from __future__ import annotations

import threading

from tensorq_engines.base.engine import Engine
from tensorq_engines.base.lane import Lane
from tensorq_engines.residency.gauge import Gauge
from tensorq_engines.residency.ledger import Integrity, Ledger, Reading
from tensorq_engines.residency.residents import Residents


class Books:
    """Reads without the lock, and writes what it read with it.

    Attributes:
        engines: by name; changed under the lock.
        lanes: whose memory counts; changed under the lock.
    """

    def __init__(self, residents: Residents, gauge: Gauge, lock: threading.Condition) -> None:
        """Keeps what it is told.

        Args:
            residents: has the account; used under the lock.
            gauge: of the memory that the models take.
            lock: the owner's.
        """
        self.engines: dict[str, Engine] = {}
        self.lanes: list[Lane] = []
        self._residents = residents
        self._gauge = gauge
        self._lock = lock
        self._ledger = Ledger()

    def read(self) -> Reading:
        """Returns both accounts of this moment."""
        with self._lock:
            engines, lanes = list(self.engines.values()), list(self.lanes)
        taken = sum(engine.memory.total_bytes for engine in engines)
        taken += sum(lane.memory.total_bytes for lane in lanes)
        return Reading(taken, self._gauge.used_bytes())

    def settle(self, reading: Reading) -> None:
        """Gives the budget back what the driver gave back."""
        with self._lock:
            unaccounted = self._residents.unaccounted_bytes
            self._residents.unaccounted_bytes = self._ledger.settle(reading, unaccounted)

    def end_eviction(self, name: str, reading: Reading) -> None:
        """Uncharges a model, and takes from the budget what the driver kept.

        Args:
            name: the model.
            reading: of now; the one before was settled just before its close.
        """
        with self._lock:
            before = self._residents.unaccounted_bytes
            now = self._ledger.settle(reading, before, evicted=True)
            self._residents.evicted(name, now - before)

    def rebase(self, reading: Reading) -> None:
        """See `Ledger.rebase`."""
        with self._lock:
            self._ledger.rebase(reading, self._residents.unaccounted_bytes)

    def integrity(self, reading: Reading) -> Integrity:
        """Returns how the accounts compare."""
        with self._lock:
            return Integrity(
                self._residents.charged,
                self._residents.budget_bytes,
                self._residents.unaccounted_bytes,
                reading.taken_bytes,
                sum(lane.memory.pinned_bytes for lane in self.lanes),
                self._ledger.driver_bytes(reading),
            )
