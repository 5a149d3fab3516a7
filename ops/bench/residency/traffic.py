"""Traffic: which model's job comes when."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ops.bench.residency.inputs import Model

MOST_ROWS = 8
BURST_JOBS = 200
SHIFTS = 6
BACKLOG_GAP_MS = 0.001


@dataclass(frozen=True, slots=True)
class Arrival:
    """A job.

    Attributes:
        at_ms: when it comes.
        model: whose it is.
        rows: how many rows it has.
    """

    at_ms: float
    model: str
    rows: int


def round_robin(models: Sequence[str], jobs: int, _dice: random.Random) -> list[str]:
    return [models[n % len(models)] for n in range(jobs)]


def zipf(models: Sequence[str], jobs: int, dice: random.Random) -> list[str]:
    """The k-th model of the list gets a share in proportion to 1/k."""
    return dice.choices(models, [1 / rank for rank in range(1, len(models) + 1)], k=jobs)


def bursts(models: Sequence[str], jobs: int, dice: random.Random) -> list[str]:
    """Runs of one model's jobs, which come all at once; no model twice in a row."""
    found: list[str] = []
    while len(found) < jobs:
        others = [model for model in models if not found or model != found[-1]]
        found += [dice.choice(others)] * dice.randint(BURST_JOBS // 2, 3 * BURST_JOBS // 2)
    return found[:jobs]


def shifting(models: Sequence[str], jobs: int, dice: random.Random) -> list[str]:
    """Zipf, and who is first changes `SHIFTS` times."""
    part = -(-jobs // SHIFTS)
    found: list[str] = []
    for shift in range(SHIFTS):
        turn = shift % len(models)
        found += zipf([*models[turn:], *models[:turn]], part, dice)
    return found[:jobs]


TRAFFICS: dict[str, Callable[[Sequence[str], int, random.Random], list[str]]] = {
    "round robin": round_robin,
    "zipf": zipf,
    "bursts": bursts,
    "shifting": shifting,
}


def arrivals(
    traffic: str, models: Sequence[Model], jobs: int, lanes: int, utilisation: float | None, seed: int = 0
) -> list[Arrival]:
    """The jobs of a traffic, in order.

    Args:
        traffic: one of `TRAFFICS`.
        models: whose jobs.
        jobs: how many.
        lanes: how many serve them.
        utilisation: the rows' time in full tiles, as a share of the lanes' time over which they come; None
            for all at the start, a microsecond apart.
        seed: of the dice.
    """
    dice = random.Random(f"{traffic} {seed}")
    owners = TRAFFICS[traffic]([model.name for model in models], jobs, dice)
    rows = [dice.randint(1, MOST_ROWS) for _ in owners]
    row_ms = {model.name: model.row_ms for model in models}
    work_ms = [row_ms[owner] * count for owner, count in zip(owners, rows, strict=True)]
    if utilisation is None:
        both = enumerate(zip(owners, rows, strict=True))
        return [Arrival(n * BACKLOG_GAP_MS, owner, count) for n, (owner, count) in both]
    gap_ms = sum(work_ms) / lanes / utilisation / jobs
    found, now_ms, due_ms = [], 0.0, 0.0
    for n, (owner, count) in enumerate(zip(owners, rows, strict=True)):
        due_ms += gap_ms if traffic == "round robin" else dice.expovariate(1 / gap_ms)
        if traffic != "bursts" or (n and owner != owners[n - 1]):
            now_ms = due_ms
        found.append(Arrival(now_ms, owner, count))
    return found
