"""Arrival rate: how many rows come per ms, lately. Pure: time is passed in."""

from __future__ import annotations

from math import exp

MEMORY_MS = 100.0
"""An arrival this old counts 1/e of a new one."""

MIN_ARRIVALS = 8
MIN_SPAN_MS = 20.0


class ArrivalRate:
    """An exponentially decaying estimate, corrected for the time before the first arrival.

    It falls while nothing comes.
    """

    __slots__ = ("_arrivals", "_first_ms", "_last_ms", "_memory_ms", "_weight")

    def __init__(self, memory_ms: float = MEMORY_MS) -> None:
        self._memory_ms = memory_ms
        self._arrivals = 0
        self._weight = 0.0
        self._first_ms = self._last_ms = 0.0

    def add(self, rows: int, now_ms: float) -> None:
        """Notes that ``rows`` rows came at ``now_ms``, on any clock that does not run backwards."""
        if not self._arrivals:
            self._first_ms = self._last_ms = now_ms
        self._arrivals += 1
        if now_ms > self._last_ms:
            self._weight *= exp((self._last_ms - now_ms) / self._memory_ms)
            self._last_ms = now_ms
        self._weight += rows

    def rows_per_ms(self, now_ms: float) -> float | None:
        """Returns the estimate; None before there were `MIN_ARRIVALS` arrivals over `MIN_SPAN_MS` ms."""
        seen_ms = now_ms - self._first_ms
        if self._arrivals < MIN_ARRIVALS or seen_ms < MIN_SPAN_MS:
            return None
        weight = self._weight * exp(min(0.0, self._last_ms - now_ms) / self._memory_ms)
        return weight / (self._memory_ms * (1 - exp(-seen_ms / self._memory_ms)))
