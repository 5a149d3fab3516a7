"""Together: what several models need at once. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tensorq_engines.sizing.fits import Fit, fit
from tensorq_engines.sizing.model import SizedModel


@dataclass(frozen=True, slots=True)
class Together:
    """All models at once.

    Attributes:
        rows: the most rows of each; None where each has its own largest tile.
        lanes: how many run them.
        shared: how they fit with one arena a lane.
        private: how they fit with activations for each context.
    """

    rows: int | None
    lanes: int
    shared: Fit
    private: Fit


def put_together(
    models: Sequence[SizedModel],
    batches: Sequence[int],
    lanes: Sequence[int],
    slots: int,
    budget_bytes: int | None,
) -> list[Together]:
    """Returns how models fit, first each with its own largest tile, then all with the same rows.

    Args:
        models: in the order of preference.
        batches: maximum rows; a number that not every model was sized for is left out.
        lanes: numbers of lanes.
        slots: staging areas of a lane.
        budget_bytes: of device memory; None for no bound.
    """
    sets = []
    for rows in (None, *batches):
        found = {model.name: size.footprint for model in models if (size := model.at(rows)) is not None}
        if len(found) < len(models):
            continue
        for count in lanes:
            shared, private = (
                fit(found, budget_bytes, count, shared=mode, slots=slots) for mode in (True, False)
            )
            sets.append(Together(rows, count, shared, private))
    return sets
