"""The table, the aims, and the JSON file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from ops.bench.measure import Run

AIM_OVER_STOCK = 25.0
AIM_JOBS_PER_S = 8000.0
AIM_OF_CEILING = 0.40


@dataclass(frozen=True, slots=True)
class Row:
    """A scenario's runs.

    Attributes:
        key, name: of the scenario.
        runs: in order.
    """

    key: str
    name: str
    runs: Sequence[Run]

    @property
    def jobs_per_s(self) -> float:
        return self.of("jobs_per_s")

    def of(self, attribute: str) -> float:
        """The median over the runs."""
        return float(median(getattr(run, attribute) for run in self.runs))

    def to_dict(self) -> dict[str, Any]:
        rates = [run.jobs_per_s for run in self.runs]
        names = ("submits_per_s", "client_us", "worker_us", "redis_us", "rows_per_tile")
        return {
            "key": self.key,
            "name": self.name,
            "jobs": self.runs[0].jobs,
            "jobs_per_s": {"median": self.jobs_per_s, "min": min(rates), "max": max(rates)},
            **{name: self.of(name) for name in names},
            "runs": [asdict(run) for run in self.runs],
        }


@dataclass(frozen=True, slots=True)
class Aim:
    """What the batched row should reach.

    Attributes:
        what: in words.
        aim, got: the figures.
    """

    what: str
    aim: float
    got: float

    @property
    def met(self) -> bool:
        return self.got >= self.aim


def aims(batched: Row, stock: Row | None, ceiling: Row | None) -> list[Aim]:
    """The aims whose rows were run."""
    found = [Aim("jobs/s", AIM_JOBS_PER_S, batched.jobs_per_s)]
    if stock is not None:
        found.append(Aim("times stock rq", AIM_OVER_STOCK, batched.jobs_per_s / stock.jobs_per_s))
    if ceiling is not None:
        found.append(Aim("of the ceiling", AIM_OF_CEILING, batched.jobs_per_s / ceiling.jobs_per_s))
    return found


def print_table(rows: Sequence[Row], stock: Row | None, ceiling: Row | None) -> None:
    """Prints a line a scenario: medians, and the least and greatest rate."""
    print(f"{'':<22}{'jobs/s':>8}{'min - max':>17}{'x stock':>9}{'ceiling':>9}", end="")
    print(f"{'client':>8}{'worker':>8}{'redis':>7}{'rows/tile':>11}{'submit/s':>10}")
    for row in rows:
        rates = [run.jobs_per_s for run in row.runs]
        over = f"{row.jobs_per_s / stock.jobs_per_s:.1f}" if stock is not None else "-"
        of = f"{row.jobs_per_s / ceiling.jobs_per_s:.0%}" if ceiling is not None else "-"
        spread = f"{min(rates):,.0f} - {max(rates):,.0f}"
        print(f"{row.name:<22}{row.jobs_per_s:>8,.0f}{spread:>17}{over:>9}{of:>9}", end="")
        for name, width in (("client_us", 8), ("worker_us", 8), ("redis_us", 7)):
            print(f"{row.of(name):>{width},.0f}", end="")
        print(f"{row.of('rows_per_tile'):>11.1f}{row.of('submits_per_s'):>10,.0f}")
    print(
        "client, worker, redis: CPU microseconds a job; submit/s: storing alone, without a worker beside it"
    )


def print_aims(found: Sequence[Aim]) -> None:
    for aim in found:
        print(f"aim: at least {aim.aim:g} {aim.what}: {aim.got:,.2f}, {'met' if aim.met else 'missed'}")


def write(file: Path, environment: dict[str, Any], rows: Sequence[Row], found: Sequence[Aim]) -> None:
    """Writes all figures as JSON."""
    file.parent.mkdir(parents=True, exist_ok=True)
    content = {
        "environment": environment,
        "rows": [row.to_dict() for row in rows],
        "aims": [{**asdict(aim), "met": aim.met} for aim in found],
    }
    file.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
