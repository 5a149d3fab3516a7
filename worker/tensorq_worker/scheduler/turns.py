"""Turns: since when each model's queue has waited for a tile. No clock of its own."""

from __future__ import annotations

from collections.abc import Collection


class Turns:
    """The clocks behind `Candidate.unserved_ms`, one for each queue that is not empty."""

    def __init__(self) -> None:
        self._since_ms: dict[str, float] = {}

    def note(self, waiting: Collection[str], now_ms: float) -> None:
        """Starts the clocks of queues that are not empty any more and stops those of the empty ones.

        Args:
            waiting: names of all models that have rows waiting.
            now_ms: the time, on any one clock.
        """
        for model in [model for model in self._since_ms if model not in waiting]:
            del self._since_ms[model]
        for model in waiting:
            self._since_ms.setdefault(model, now_ms)

    def served(self, model: str, now_ms: float) -> None:
        """Starts a model's clock anew: a tile of its rows went to a lane."""
        self._since_ms[model] = now_ms

    def unserved_ms(self, model: str, now_ms: float) -> float:
        """Returns how long the model's queue has been not empty without getting a tile; 0 if it is empty."""
        return now_ms - self._since_ms.get(model, now_ms)
