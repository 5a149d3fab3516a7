"""Residents: all models of one pool of memory, and what may be loaded into it. No I/O and no clock."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from tensorq_engines.base.footprint import Footprint
from tensorq_engines.residency.account import Account
from tensorq_engines.residency.decision import Decision, Fits, Later, Never
from tensorq_engines.residency.dwell import Dwell
from tensorq_engines.residency.policy import LoadPolicy, ResidentState
from tensorq_engines.residency.refusal import refusal
from tensorq_engines.residency.resident import Resident
from tensorq_engines.residency.room import Room
from tensorq_engines.residency.victims import choose_victims

FIRST_COOLDOWN_S = 5.0
LONGEST_COOLDOWN_S = 300.0
MAX_DOUBLINGS = 16


class Residents:
    """Decides, and keeps the account. Every time is on one clock of the caller's.

    A load goes `room_for`, for its victims `begin_eviction` and `evicted`, then `begin_load`, and `loaded`
    or `failed`. A tile goes `use` and `done`. Methods called out of order raise ValueError.

    Attributes:
        lanes: how many run the models.
        slots: staging areas of a lane.
        shared: whether a lane's models share one arena.
        budget_bytes: what models may take; None for no limit.
        pinned_limit_bytes: page-locked bytes that all slots may take; None for no limit.
        unaccounted_bytes: what evicted models gave back and the driver did not; it lowers the budget.
        dwell: how long a model with work queued stays after its load.
    """

    def __init__(
        self,
        budget_bytes: int | None,
        lanes: int,
        *,
        shared: bool = True,
        slots: int = 2,
        pinned_limit_bytes: int | None = None,
        dwell_multiple: float = 4.0,
        dwell_floor_s: float = 0.1,
        longest_dwell_s: float = 60.0,
    ) -> None:
        self.budget_bytes = budget_bytes
        self.lanes = lanes
        self.shared = shared
        self.slots = slots
        self.pinned_limit_bytes = pinned_limit_bytes
        self.dwell = Dwell(dwell_multiple, dwell_floor_s, longest_dwell_s)
        self.unaccounted_bytes = 0
        self._models: dict[str, Resident] = {}

    def add(
        self, name: str, footprint: Footprint, policy: LoadPolicy = LoadPolicy.LRU, pinned: bool = False
    ) -> None:
        """Makes a model known; nothing is promised to it yet."""
        if name in self._models:
            raise ValueError(f"model {name!r} is known already: names are unique in a pool")
        self._models[name] = Resident(name, footprint, LoadPolicy(policy), pinned)

    def __getitem__(self, name: str) -> Resident:
        return self._models[name]

    def __iter__(self) -> Iterator[Resident]:
        return iter(self._models.values())

    def __len__(self) -> int:
        return len(self._models)

    def __contains__(self, name: object) -> bool:
        return name in self._models

    @property
    def room(self) -> Room:
        """What there is for models now."""
        return Room(
            self.budget_bytes,
            self.unaccounted_bytes,
            self.pinned_limit_bytes,
            self.lanes,
            self.slots,
            self.shared,
        )

    @property
    def charged(self) -> Account:
        """What is promised to the models that are loading, resident or on their way out."""
        return self.room.charge([model.footprint for model in self if model.charged])

    def predict(self, names: Iterable[str]) -> Account:
        """Returns what these models would need, all loaded at once and nothing else."""
        return self.room.charge([self._models[name].footprint for name in dict.fromkeys(names)])

    def correct(self, name: str, footprint: Footprint) -> None:
        """Puts what was measured in the place of what was predicted; `room_to_stay` tells what follows."""
        self._models[name].footprint = footprint

    def stay_s(self, name: str) -> float:
        """Returns how long a model keeps its place after a load while it has work queued."""
        return self.dwell.stay_s(self._models[name])

    def lately(self, now_s: float) -> set[str]:
        """Returns the resident models that were loaded or ran a tile within their stay."""
        return {
            model.name
            for model in self
            if model.state is ResidentState.RESIDENT and now_s < model.last_used_s + self.stay_s(model.name)
        }

    def room_for(self, name: str, now_s: float, waiting: Collection[str] = ()) -> Decision:
        """Returns what a load of a model would need, and changes nothing.

        Args:
            name: the model that is wanted.
            now_s: the time.
            waiting: names of models with work queued.

        Returns:
            Fits where it is resident or can be loaded as things are, Evict where others must leave first;
            Later where it is under way or what stands in its way will pass; else Never.
        """
        model = self._models[name]
        if model.state is ResidentState.RESIDENT:
            return Fits()
        if model.state in (ResidentState.LOADING, ResidentState.EVICTING):
            return Later(f"model {name!r} is {model.state} already")
        decision = self._decide(model, now_s, waiting)
        cooling = model.state is ResidentState.FAILED and now_s < model.retry_at_s
        if cooling and not isinstance(decision, Never):
            return Later(f"its last load failed: {model.reason}", model.retry_at_s)
        return decision

    def room_to_stay(self, name: str, now_s: float, waiting: Collection[str] = ()) -> Decision:
        """Returns who must leave for a resident model that turned out larger than predicted.

        Later then means that it takes more than there is for a while, and Never that it must leave itself.
        """
        return self._decide(self._models[name], now_s, waiting)

    def begin_load(self, name: str, now_s: float) -> None:
        """Promises a model its memory, at a time that nothing depends on yet.

        Raises:
            ValueError: it is not absent, or there is no room for it.
        """
        model = self._expect(name, "be loaded", ResidentState.ABSENT, ResidentState.FAILED)
        if not self.room.holds([model.footprint, *(other.footprint for other in self if other.charged)]):
            raise ValueError(f"model {name!r} has no room: ask room_for() and evict its victims first")
        model.state = ResidentState.LOADING

    def loaded(self, name: str, now_s: float, load_s: float) -> None:
        """Ends a load that took ``load_s`` seconds."""
        model = self._expect(name, "end its load", ResidentState.LOADING)
        model.state = ResidentState.RESIDENT
        model.loaded_at_s = model.last_used_s = now_s
        model.load_s = load_s
        model.loads += 1
        model.failures_in_row = 0
        model.reason = ""

    def failed(self, name: str, now_s: float, reason: str) -> None:
        """Ends a load that failed: it is not tried again for 5 s, then 10, up to 300."""
        model = self._expect(name, "fail its load", ResidentState.LOADING)
        model.state = ResidentState.FAILED
        model.failures += 1
        model.failures_in_row += 1
        doublings = min(model.failures_in_row - 1, MAX_DOUBLINGS)
        model.retry_at_s = now_s + min(FIRST_COOLDOWN_S * 2**doublings, LONGEST_COOLDOWN_S)
        model.reason = reason

    def refused(self, name: str, reason: str) -> None:
        """Notes why a model does not fit, for those who look."""
        self._models[name].reason = reason

    def begin_eviction(self, name: str) -> None:
        """Takes a model out of use; its memory stays charged until `evicted`.

        Raises:
            ValueError: it is not resident, or a tile of it is running.
        """
        model = self._expect(name, "be evicted", ResidentState.RESIDENT)
        if model.running:
            raise ValueError(f"model {name!r} cannot be evicted: {model.running} tiles of it are running")
        model.state = ResidentState.EVICTING

    def evicted(self, name: str, shortfall_bytes: int = 0) -> None:
        """Ends an eviction.

        Args:
            name: the model.
            shortfall_bytes: what it gave back and the driver did not; less than 0 where the driver gave
                more, of what was unaccounted before.
        """
        model = self._expect(name, "end its eviction", ResidentState.EVICTING)
        model.state = ResidentState.ABSENT
        model.evictions += 1
        self.unaccounted_bytes = max(self.unaccounted_bytes + shortfall_bytes, 0)

    def use(self, name: str, now_s: float) -> None:
        """Begins a tile: the model cannot be evicted until `done`, as many times as it was used."""
        model = self._expect(name, "run a tile", ResidentState.RESIDENT)
        model.running += 1
        model.hits += 1
        model.last_used_s = now_s

    def done(self, name: str, now_s: float) -> None:
        """Ends a tile."""
        model = self._models[name]
        if not model.running:
            raise ValueError(f"model {name!r} has no tile running: done() comes once for each use()")
        model.running -= 1
        model.last_used_s = now_s

    def _decide(self, model: Resident, now_s: float, waiting: Collection[str]) -> Decision:
        room = self.room
        others = [other for other in self if other.charged and other is not model]
        if room.holds([model.footprint, *(other.footprint for other in others)]):
            return Fits()
        evicts = model.policy is LoadPolicy.LRU
        staying = [
            other
            for other in others
            if other.state is not ResidentState.EVICTING and not (evicts and other.may_leave)
        ]
        if not room.holds([model.footprint, *(other.footprint for other in staying)]):
            return Never(refusal(model, staying, room))
        return choose_victims(model, others, room, now_s, waiting, self.dwell)

    def _expect(self, name: str, action: str, *states: ResidentState) -> Resident:
        model = self._models[name]
        if model.state not in states:
            raise ValueError(f"model {name!r} is {model.state} and cannot {action}: it must be {states[0]}")
        return model
