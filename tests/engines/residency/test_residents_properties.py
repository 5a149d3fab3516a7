"""Residents under random orders of everything that can happen."""

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tensorq_engines import (
    Evict,
    Fits,
    Footprint,
    Later,
    LoadPolicy,
    Never,
    Residents,
    ResidentState,
)
from tensorq_engines.residency.account import charge
from tensorq_engines.residency.refusal import size

SMALL = st.integers(0, 8)
FOOTPRINTS = st.builds(Footprint, st.integers(10, 60), st.integers(0, 30), SMALL, SMALL, SMALL)
# Most are of the kind that comes and goes.
POLICIES = st.sampled_from([*LoadPolicy, *[LoadPolicy.LRU] * 6])
PINS = st.sampled_from([True, *[False] * 6])
CHARGED = (ResidentState.LOADING, ResidentState.RESIDENT, ResidentState.EVICTING)


class Machine(RuleBasedStateMachine):
    """Follows every decision of room_for, and keeps its own account."""

    @initialize(
        budget=st.integers(80, 200) | st.none(),
        lanes=st.integers(1, 2),
        shared=st.booleans(),
        slots=st.integers(2, 3),
        pinned_limit=st.none() | st.integers(20, 150),
        models=st.lists(st.tuples(FOOTPRINTS, POLICIES, PINS), min_size=4, max_size=8),
    )
    def start(self, budget, lanes, shared, slots, pinned_limit, models):
        self.residents = Residents(budget, lanes, shared=shared, slots=slots, pinned_limit_bytes=pinned_limit)
        self.now_s = 0.0
        self.settings = (budget, lanes, shared, slots, pinned_limit)
        for index, (footprint, policy, pinned) in enumerate(models):
            self.residents.add(f"m{index}", footprint, policy, pinned)

    def models(self, *states):
        return [model for model in self.residents if model.state in states]

    def pick(self, data, *states):
        models = self.models(*states)
        return data.draw(st.sampled_from(models)).name if models else None

    def account(self, names, shared=None):
        _, lanes, was_shared, slots, _ = self.settings
        footprints = [self.residents[name].footprint for name in names]
        return charge(footprints, lanes, shared=was_shared if shared is None else shared, slots=slots)

    def fits(self, names):
        budget, _, _, _, pinned_limit = self.settings
        account = self.account(names)
        left = None if budget is None else max(budget - self.residents.unaccounted_bytes, 0)
        return (left is None or account.total_bytes <= left) and (
            pinned_limit is None or account.pinned_bytes <= pinned_limit
        )

    @rule(seconds=st.floats(0, 30))
    def time_passes(self, seconds):
        self.now_s += seconds

    @rule(data=st.data())
    def ask(self, data):
        out = set(ResidentState) - set(CHARGED) if data.draw(st.integers(0, 9)) else ResidentState
        name = self.pick(data, *out)
        if name is None:
            return
        wanted = self.residents[name]
        names = [model.name for model in self.residents]
        waiting = data.draw(st.sets(st.sampled_from(names)))
        decision = self.residents.room_for(name, self.now_s, waiting)
        charged = {model.name for model in self.models(*CHARGED)}
        if wanted.state in CHARGED:
            assert isinstance(decision, Fits if wanted.state is ResidentState.RESIDENT else Later)
            return
        cooling = wanted.state is ResidentState.FAILED and self.now_s < wanted.retry_at_s
        evicts = wanted.policy is LoadPolicy.LRU
        firm = {
            model.name
            for model in self.models(*CHARGED)
            if model.state is not ResidentState.EVICTING
            and (not evicts or model.pinned or model.policy is not LoadPolicy.LRU)
        }
        match decision:
            case Fits():
                assert not cooling
                assert self.fits(charged | {name})
                self.residents.begin_load(name, self.now_s)
                if data.draw(st.integers(0, 7)):
                    self.residents.loaded(name, self.now_s, data.draw(st.floats(0, 5)))
            case Evict(victims):
                assert not cooling
                assert evicts
                assert victims
                for victim in map(self.residents.__getitem__, victims):
                    assert victim.state is ResidentState.RESIDENT
                    assert victim.policy is LoadPolicy.LRU
                    assert not victim.pinned
                    assert not victim.running
                    if victim.name in waiting:
                        assert self.now_s >= victim.loaded_at_s + max(0.1, 4 * victim.load_s)
                        easy = [
                            other.name
                            for other in self.models(ResidentState.RESIDENT)
                            if other.may_leave and not other.running and other.name not in waiting
                        ]
                        assert not self.fits(charged - set(easy) | {name})
                assert not self.fits(charged | {name})
                assert self.fits(charged - set(victims) | {name})
                for victim in victims:
                    assert not self.fits((charged - set(victims)) | {name, victim})
                for victim in victims:
                    self.residents.begin_eviction(victim)
                if data.draw(st.integers(0, 3)):
                    for victim in victims:
                        self.residents.evicted(victim)
            case Later(until_s=until_s, draining=draining):
                assert cooling or self.fits(firm | {name})
                assert until_s is None or until_s > self.now_s
                if draining:
                    assert until_s is None
                    assert any(self.residents[other].running for other in draining)
                    assert self.fits(charged - set(draining) | {name})
                if until_s is not None and not cooling:
                    # Of tiles nobody knows how long they run.
                    then = self.residents.room_for(name, until_s, waiting)
                    assert not isinstance(then, Later) or then.draining
            case Never(message):
                assert not self.fits(firm | {name})
                account, left = self.account(firm | {name}), self.residents.room.limit_bytes
                pinned_limit = self.settings[4]
                if left is not None and account.total_bytes > left:
                    assert size(account.total_bytes) in message
                    assert size(self.settings[0]) in message
                    assert size(account.total_bytes - left) in message
                if pinned_limit is not None and account.pinned_bytes > pinned_limit:
                    assert size(account.pinned_bytes) in message
                    assert size(pinned_limit) in message
                assert "raise the" in message

    @rule(data=st.data(), load_s=st.floats(0, 5), failed=st.booleans())
    def load_ends(self, data, load_s, failed):
        if (name := self.pick(data, ResidentState.LOADING)) is not None:
            if failed:
                self.residents.failed(name, self.now_s, "broken")
            else:
                self.residents.loaded(name, self.now_s, load_s)

    @rule(data=st.data(), shortfall=st.integers(-30, 20))
    def eviction_ends(self, data, shortfall):
        if (name := self.pick(data, ResidentState.EVICTING)) is not None:
            self.residents.evicted(name, shortfall)

    @rule(data=st.data())
    def tile_begins(self, data):
        if (name := self.pick(data, ResidentState.RESIDENT)) is not None:
            self.residents.use(name, self.now_s)

    @rule(data=st.data())
    def tile_ends(self, data):
        running = [model.name for model in self.residents if model.running]
        if running:
            self.residents.done(data.draw(st.sampled_from(running)), self.now_s)

    @rule(data=st.data())
    def not_resident_runs_nothing(self, data):
        name = self.pick(data, *set(ResidentState) - {ResidentState.RESIDENT})
        if name is not None:
            with pytest.raises(ValueError, match="must be resident"):
                self.residents.use(name, self.now_s)

    @invariant()
    def one_account(self):
        names = [model.name for model in self.models(*CHARGED)]
        assert self.residents.charged == self.account(names) == self.residents.predict(names)

    @invariant()
    def within_the_budget_but_for_what_the_driver_kept(self):
        budget, _, _, _, pinned_limit = self.settings
        account = self.residents.charged
        # Decisions keep within the budget less what was unaccounted then; shortfalls come after them.
        assert budget is None or account.total_bytes <= budget
        assert pinned_limit is None or account.pinned_bytes <= pinned_limit

    @invariant()
    def sharing_never_takes_more(self):
        names = [model.name for model in self.residents]
        assert self.account(names, shared=True).total_bytes <= self.account(names, shared=False).total_bytes

    @invariant()
    def only_resident_models_run(self):
        assert all(model.state is ResidentState.RESIDENT for model in self.residents if model.running)


TestResidents = Machine.TestCase
TestResidents.settings = settings(
    max_examples=60, stateful_step_count=40, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
