"""The jobs of a run, and what each must come to: all of it follows from the seed."""

from __future__ import annotations

import random
from dataclasses import dataclass
from enum import StrEnum

# Of which models, weighted; see `models`.
AFFINE, PAIR, LOOKUP = "chaos-affine", "chaos-pair", "chaos-lookup"
MODELS = (AFFINE, PAIR, LOOKUP)
PRIORITIES = ("high", "normal", "normal", "normal", "low")
ROWS = (1, 1, 1, 1, 3, 12)
POISON_SHARE = 0.01
# A job that kills its worker costs four processes and as many leases.
DEADLY_EVERY_S = 30.0
WIDE_EVERY = 100
RETRY_SHARE, DEPENDENT_SHARE = 0.2, 0.05
BURST_S = 0.7


class Kind(StrEnum):
    """What a job does; the value is for the report."""

    INNOCENT = "innocent"
    FAILS_TILE = "fails its tile"
    KILLS = "kills its process"
    GARBAGE = "no payload"
    MISFIT = "wrong dtype"


# The class name of the error that each must fail with.
REASONS = {
    Kind.FAILS_TILE: "TileFailed",
    Kind.KILLS: "PoisonJob",
    Kind.GARBAGE: "WireError",
    Kind.MISFIT: "InputError",
}


@dataclass(frozen=True, slots=True)
class Work:
    """One job.

    Attributes:
        job_id: known beforehand, so that a submit whose fate is unknown can be repeated.
        at_s: when to submit it, in seconds from the start.
        kind: what it does.
        model: for which model.
        number: what its rows are made of; no two jobs of a run share it.
        rows: rows along the batch axis.
        wide: its payload and result are too large to be sent inside scripts.
        priority: one of RQ's three queues of the model.
        retries: tries that the user grants on the job's own errors.
        parent: id of the job that it depends on, or None.
    """

    job_id: str
    at_s: float
    kind: Kind
    model: str
    number: int
    rows: int
    wide: bool
    priority: str
    retries: int
    parent: str | None


def plan_work(seed: int, jobs: int, span_s: float) -> list[Work]:
    """Plans jobs over ``span_s`` seconds, in bursts, in the order of submission."""
    rng = random.Random(f"work {seed}")
    kinds = _kinds(rng, jobs, span_s)
    bursts = max(1, int(span_s / BURST_S))
    planned: list[Work] = []
    for number, kind in enumerate(kinds):
        model = LOOKUP if kind is Kind.FAILS_TILE else AFFINE if kind is not Kind.INNOCENT else None
        model = model if model is not None else rng.choice(MODELS)
        wide = kind is Kind.INNOCENT and model == AFFINE and rng.randrange(WIDE_EVERY) == 0
        parents = [w for w in planned[-50:] if w.kind is Kind.INNOCENT]
        dependent = kind is Kind.INNOCENT and parents and rng.random() < DEPENDENT_SHARE
        planned.append(
            Work(
                job_id=f"chaos-{seed}-{number}",
                at_s=span_s * (number * bursts // jobs) / bursts,
                kind=kind,
                model=model,
                number=number,
                rows=1 if wide else rng.choice(ROWS),
                wide=wide,
                priority=rng.choice(PRIORITIES),
                retries=rng.choice((1, 2)) if rng.random() < RETRY_SHARE else 0,
                parent=rng.choice(parents).job_id if dependent else None,
            )
        )
    return planned


def _kinds(rng: random.Random, jobs: int, span_s: float) -> list[Kind]:
    """What each job is: 1% poison, those that kill early enough to be tried out."""
    kinds = [Kind.INNOCENT] * jobs
    poison = max(len(REASONS), round(jobs * POISON_SHARE))
    deadly = max(1, min(poison // 10, int(span_s / DEADLY_EVERY_S)))
    half = range(jobs // 20, jobs // 2)
    for n in rng.sample(half, deadly):
        kinds[n] = Kind.KILLS
    rest = [n for n in range(jobs) if kinds[n] is Kind.INNOCENT]
    others = (Kind.FAILS_TILE, Kind.FAILS_TILE, Kind.GARBAGE, Kind.MISFIT)
    for position, n in enumerate(rng.sample(rest, poison - deadly)):
        kinds[n] = others[position % len(others)]
    return kinds
