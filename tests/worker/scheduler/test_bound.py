"""The bound, on paper and in the simulation of ops/bench/residency."""

import random
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ops.bench.residency.inputs import Model
from ops.bench.residency.policies import Aware
from ops.bench.residency.simulation import MAX_DELAY_MS, Outcome, run
from ops.bench.residency.traffic import Arrival

from tensorq_engines import Footprint, Residents
from tensorq_worker.scheduler import ModelTimes, bound_ms

JOBS = 200
LADDERS = [(1, 8, 32), (4,), (1, 2), (16, 32)]


@dataclass(frozen=True)
class Case:
    models: list[Model]
    budget_bytes: int
    lanes: int
    dwell_multiple: float
    dwell_floor_s: float
    jobs: list[Arrival]

    def run(self, ageing: bool = True) -> Outcome:
        residents = Residents(
            self.budget_bytes,
            self.lanes,
            dwell_multiple=self.dwell_multiple,
            dwell_floor_s=self.dwell_floor_s,
        )
        return run(self.models, residents, self.jobs, Aware(ageing))

    def bounds_ms(self) -> dict[str, float]:
        stays_ms = {
            model.name: max(1000 * self.dwell_floor_s, self.dwell_multiple * model.load_ms)
            for model in self.models
        }
        times = {model.name: ModelTimes(model.load_ms, stays_ms[model.name]) for model in self.models}
        longest_ms = max(max(model.tile_ms.values()) for model in self.models)
        # In flight: a lane's two slots and the one that frees one; then one tile of each.
        lag_ms = longest_ms * (len(self.models) + 3) + MAX_DELAY_MS
        return {name: bound_ms(name, times, lag_ms) for name in times}


def traffic(models, dice, gap_ms, weights):
    """Jobs of 1 to 70 rows, one at a time or 20 at once."""
    at_ms, clump = 0.0, dice.choice([1, 20])
    owners = dice.choices([model.name for model in models], weights, k=JOBS)
    found = []
    for number, owner in enumerate(owners):
        if number % clump == 0:
            at_ms += clump * dice.expovariate(1 / gap_ms) if gap_ms else 0.0
        found.append(Arrival(at_ms, owner, dice.choice([1, 1, 3, 8, 70])))
    return found


@st.composite
def cases(draw):
    models = [
        Model(
            f"m{n}",
            Footprint(draw(st.integers(1, 10))),
            draw(st.floats(1, 300)),
            {size: base + row * size for size in draw(st.sampled_from(LADDERS))},
        )
        for n in range(draw(st.integers(2, 6)))
        for base, row in [draw(st.sampled_from([(0.1, 0.02), (1, 0.1), (20, 0.01), (5, 1)]))]
    ]
    sizes = [model.footprint.weights_bytes for model in models]
    weights = draw(st.lists(st.integers(1, 20), min_size=len(models), max_size=len(models)))
    return Case(
        models,
        draw(st.integers(max(sizes), sum(sizes))),
        draw(st.integers(1, 3)),
        draw(st.sampled_from([0, 1, 4])),
        draw(st.sampled_from([0.001, 0.02, 0.1])),
        traffic(models, random.Random(draw(st.integers())), draw(st.sampled_from([0, 1, 10, 100])), weights),
    )


@settings(max_examples=40, deadline=None)
@given(cases())
def test_no_queue_goes_without_a_tile_for_longer_than_the_bound(case):
    outcome = case.run()
    assert outcome.lost == 0
    over = {name: ms for name, ms in outcome.longest_ms.items() if ms > case.bounds_ms()[name]}
    assert not over


def crowded() -> Case:
    """Room for one of two models, and more work for the first than can be done meanwhile."""
    models = [Model(name, Footprint(1), 10.0, {1: 1.0}) for name in ("first", "second")]
    jobs = [Arrival(0.9 * n, "second" if n == 20 else "first", 1) for n in range(2000)]
    return Case(models, 1, 1, 4.0, 0.0, jobs)


@pytest.mark.parametrize("ageing", [True, False])
def test_only_ageing_keeps_the_bound(ageing):
    outcome, bounds_ms = crowded().run(ageing), crowded().bounds_ms()
    kept = all(ms <= bounds_ms[name] for name, ms in outcome.longest_ms.items())
    assert kept == ageing


def test_the_bound_is_load_time_and_dwell_cap_of_the_others():
    times = {"a": ModelTimes(10, 100), "b": ModelTimes(20, 80), "c": ModelTimes(5, 400)}
    assert bound_ms("a", times) == (20 + 2 * 80) + (5 + 2 * 400)
    assert bound_ms("a", {"a": ModelTimes(10, 100)}) == 10


def test_an_own_load_longer_than_half_the_others_stays_takes_their_place():
    times = {"slow": ModelTimes(1000, 100), "quick": ModelTimes(10, 100)}
    assert bound_ms("slow", times) == 10 + 1.5 * 100 + 1000
    assert bound_ms("slow", times, lag_ms=7) == 10 + 1.5 * 100 + 1000 + 3 * 7
