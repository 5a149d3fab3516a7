"""Rows: those of one model that wait, and how long they did."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from ops.bench.residency.traffic import Arrival


@dataclass(slots=True)
class Queue:
    """Rows in order of arrival.

    Attributes:
        rows: rows waiting.
        ages_ms: of jobs that left, from arrival until their last tile began.
    """

    rows: int = 0
    ages_ms: list[float] = field(default_factory=list)
    _longest_ms: float = 0.0
    _jobs: deque[tuple[float, int]] = field(default_factory=deque)
    _since_ms: float = 0.0

    def add(self, job: Arrival) -> None:
        if not self._jobs:
            self._since_ms = max(self._since_ms, job.at_ms)
        self._jobs.append((job.at_ms, job.rows))
        self.rows += job.rows

    def oldest_ms(self) -> float:
        """When the job in front came."""
        return self._jobs[0][0]

    def take(self, size: int, start_ms: float) -> int:
        """Takes up to ``size`` rows for a tile that begins at ``start_ms``; returns how many."""
        left = size
        while left and self._jobs:
            at_ms, rows = self._jobs.popleft()
            if rows > left:
                self._jobs.appendleft((at_ms, rows - left))
                rows = left
            else:
                self.ages_ms.append(start_ms - at_ms)
            left -= rows
        self.rows -= size - left
        self._longest_ms = max(self._longest_ms, start_ms - self._since_ms)
        self._since_ms = start_ms
        return size - left

    def unserved_ms(self, now_ms: float) -> float:
        """The longest time until now that it was not empty and no tile of it began."""
        return max(self._longest_ms, now_ms - self._since_ms if self._jobs else 0.0)
