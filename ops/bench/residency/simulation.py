"""Simulation: a policy serves a traffic on a virtual clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ops.bench.residency.gpu import Gpu
from ops.bench.residency.inputs import Model
from ops.bench.residency.policies import Policy
from ops.bench.residency.traffic import Arrival

from tensorq_engines import Residents

MAX_DELAY_MS = 5.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a run.

    Attributes:
        jobs: how many came.
        lost: how many of them never ran.
        loads, evictions: of all models.
        makespan_ms: from the first arrival until the last tile was done.
        busy_share: the lanes' time in tiles, of all their time.
        p50_ms, p99_ms, max_ms: of the jobs' times from arrival until their last tile began.
        longest_ms: by queue: the longest that it was not empty and no tile of it began.
    """

    jobs: int
    lost: int
    loads: int
    evictions: int
    makespan_ms: float
    busy_share: float
    p50_ms: float
    p99_ms: float
    max_ms: float
    longest_ms: dict[str, float]

    @property
    def jobs_per_s(self) -> float:
        return 1000 * (self.jobs - self.lost) / self.makespan_ms


def run(
    models: Sequence[Model],
    residents: Residents,
    jobs: Sequence[Arrival],
    policy: Policy,
    max_delay_ms: float = MAX_DELAY_MS,
) -> Outcome:
    """Runs until nothing is left to happen.

    Args:
        models: all of them.
        residents: the account of memory; the models are added to it here.
        jobs: in order of arrival.
        policy: decides.
        max_delay_ms: how long rows may wait for company.
    """
    for model in models:
        residents.add(model.name, model.footprint)
    gpu = Gpu(models, residents, residents.lanes, max_delay_ms)
    coming = 0
    while True:
        while coming < len(jobs) and jobs[coming].at_ms <= gpu.now_ms:
            gpu.queues[jobs[coming].model].add(jobs[coming])
            coming += 1
        again_ms = policy.act(gpu)
        times = [gpu.next_end_ms()]
        times.append(jobs[coming].at_ms if coming < len(jobs) else None)
        # No sooner than a microsecond, or rounding could keep the clock where it is.
        times.append(None if again_ms is None else gpu.now_ms + max(again_ms, 1e-3))
        following = [time_ms for time_ms in times if time_ms is not None]
        if not following:
            break
        gpu.advance(min(following))
    ages = sorted(age_ms for queue in gpu.queues.values() for age_ms in queue.ages_ms)
    span_ms = gpu.now_ms - jobs[0].at_ms
    return Outcome(
        jobs=len(jobs),
        lost=len(jobs) - len(ages),
        loads=sum(model.loads for model in residents),
        evictions=sum(model.evictions for model in residents),
        makespan_ms=span_ms,
        busy_share=gpu.busy_ms / span_ms / residents.lanes,
        p50_ms=_quantile(ages, 0.5),
        p99_ms=_quantile(ages, 0.99),
        max_ms=_quantile(ages, 1.0),
        longest_ms={name: queue.unserved_ms(gpu.now_ms) for name, queue in gpu.queues.items()},
    )


def _quantile(ordered: Sequence[float], share: float) -> float:
    return ordered[max(0, round(share * len(ordered)) - 1)] if ordered else 0.0
