"""Compare: both policies on the same arrivals, and what must hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ops.bench.residency.inputs import Model, budget_for
from ops.bench.residency.policies import Aware, FirstCome
from ops.bench.residency.simulation import Outcome, run
from ops.bench.residency.traffic import arrivals

from tensorq_engines import Resident, Residents
from tensorq_worker.scheduler import ModelTimes, bound_ms

MOST_OF_BASELINE_LOADS = 0.2


@dataclass(frozen=True, slots=True)
class Setting:
    """What all runs share.

    Attributes:
        models: on the GPU.
        jobs: of a run.
        resident: how many models the budget holds.
        lanes: how many.
        dwell_multiple, dwell_floor_s: of `Residents`.
        ageing: whether the scheduler's queues become due.
        seed: of the traffic.
    """

    models: Sequence[Model]
    jobs: int = 10_000
    resident: int = 3
    lanes: int = 1
    dwell_multiple: float = 4.0
    dwell_floor_s: float = 0.1
    ageing: bool = True
    seed: int = 0

    @property
    def budget_bytes(self) -> int:
        return budget_for(self.models, self.resident, self.lanes)

    def residents(self) -> Residents:
        """An empty account. Activations are private: shared, all of the models would fit."""
        return Residents(
            self.budget_bytes,
            self.lanes,
            shared=False,
            dwell_multiple=self.dwell_multiple,
            dwell_floor_s=self.dwell_floor_s,
        )

    def bounds_ms(self) -> dict[str, float]:
        """The scheduler's bound, by queue."""
        dwell = self.residents().dwell
        times = {}
        for model in self.models:
            loaded = Resident(model.name, model.footprint, load_s=model.load_ms / 1000)
            times[model.name] = ModelTimes(model.load_ms, 1000 * dwell.stay_s(loaded))
        return {name: bound_ms(name, times) for name in times}


@dataclass(frozen=True, slots=True)
class Pair:
    """Both policies on one traffic.

    Attributes:
        traffic: its name.
        utilisation: at which it comes; None where all is there at the start.
        baseline, aware: what came of it.
        bounds_ms: by queue.
    """

    traffic: str
    utilisation: float | None
    baseline: Outcome
    aware: Outcome
    bounds_ms: dict[str, float]

    @property
    def name(self) -> str:
        return f"{self.traffic}, {'backlog' if self.utilisation is None else f'{self.utilisation:.0%}'}"

    @property
    def loads_share(self) -> float:
        """The aware policy's loads, as a share of the baseline's."""
        return self.aware.loads / self.baseline.loads

    def of_bound(self, outcome: Outcome) -> float:
        """The worst queue's longest time without a tile, as a share of its bound."""
        return max(outcome.longest_ms[name] / bound for name, bound in self.bounds_ms.items())

    def problems(self) -> list[str]:
        """What must hold and does not."""
        found = [
            f"{self.name}: queue {name} went {longest_ms:,.0f} ms without a tile, and the bound is "
            f"{self.bounds_ms[name]:,.0f} ms"
            for name, longest_ms in self.aware.longest_ms.items()
            if longest_ms > self.bounds_ms[name]
        ]
        for policy, outcome in (("first come", self.baseline), ("tensorq", self.aware)):
            if outcome.lost:
                found.append(f"{self.name}: {policy} lost {outcome.lost} of {outcome.jobs} jobs")
        if self.traffic == "round robin" and self.loads_share > MOST_OF_BASELINE_LOADS:
            found.append(
                f"{self.name}: {self.aware.loads} loads are {self.loads_share:.0%} of the baseline's "
                f"{self.baseline.loads}, and at most {MOST_OF_BASELINE_LOADS:.0%} are wanted"
            )
        return found

    def to_dict(self) -> dict[str, Any]:
        return {
            **asdict(self),
            "loads_share": self.loads_share,
            "of_bound": {"baseline": self.of_bound(self.baseline), "aware": self.of_bound(self.aware)},
        }


def compare(setting: Setting, traffic: str, utilisation: float | None) -> Pair:
    """Runs both policies on the same arrivals."""
    jobs = arrivals(traffic, setting.models, setting.jobs, setting.lanes, utilisation, setting.seed)
    baseline = run(setting.models, setting.residents(), jobs, FirstCome())
    aware = run(setting.models, setting.residents(), jobs, Aware(setting.ageing))
    return Pair(traffic, utilisation, baseline, aware, setting.bounds_ms())
