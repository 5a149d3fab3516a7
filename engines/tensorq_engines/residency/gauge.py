"""Gauge: how much memory is in use, by the account of whoever gives it."""

from __future__ import annotations

from typing import Protocol


class Gauge(Protocol):
    """Reads one kind of engines' memory."""

    def used_bytes(self) -> int | None:
        """Returns what is in use, by whatever process; None where nothing can tell."""

    def free_bytes(self) -> int | None:
        """Returns what nobody uses; None where nothing can tell."""


class NullGauge:
    """For host memory: a process may keep what it freed, so its size says nothing of what models take."""

    def used_bytes(self) -> None:
        """Returns None."""
        return None

    def free_bytes(self) -> None:
        """Returns None."""
        return None
