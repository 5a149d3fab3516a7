"""Dwell: how long a model that was loaded stays while it has work queued, so that loads pay off. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from tensorq_engines.residency.resident import Resident


@dataclass(frozen=True, slots=True)
class Dwell:
    """A rule.

    Attributes:
        multiple: of the time that the load took.
        floor_s: the least.
        longest_s: the most, because a first load may have built a plan for minutes.
    """

    multiple: float
    floor_s: float
    longest_s: float

    def stay_s(self, model: Resident) -> float:
        """Returns how long a model stays after a load like its last."""
        return min(max(self.multiple * model.load_s, self.floor_s), self.longest_s)

    def until_s(self, model: Resident) -> float:
        """Returns until when a model stays, on the clock of its load."""
        return model.loaded_at_s + self.stay_s(model)
