"""Who is loaded, who leaves, and why not, on small numbers; one lane and shared arenas unless said."""

import pytest

from tensorq_engines import Evict, Fits, Footprint, Later, LoadPolicy, Never, Residents, ResidentState

EAGER, LAZY, LRU = LoadPolicy


def pool(budget=100, lanes=1, *, loaded=(), **sizes):
    """Models by their weights; those of ``loaded`` are loaded at 1, 2, 3, ..., in a second each."""
    residents = Residents(budget, lanes)
    for name, weights in sizes.items():
        residents.add(name, Footprint(weights))
    for now_s, name in enumerate(loaded, 1):
        load(residents, name, now_s)
    return residents


def load(residents, name, now_s=0.0, load_s=1.0):
    residents.begin_load(name, now_s)
    residents.loaded(name, now_s, load_s)


class TestCharge:
    def test_arenas_and_io_count_once_a_lane_and_weights_once(self):
        residents = Residents(None, 2, slots=3)
        residents.add("a", Footprint(10, 100, 7, 5, 1))
        residents.add("b", Footprint(20, 60, 9, 4, 2))
        load(residents, "a")
        load(residents, "b")
        account = residents.charged
        assert (account.weights_bytes, account.contexts_bytes) == (30, 6)
        assert (account.arenas_bytes, account.io_bytes) == (200, 18)
        assert account.total_bytes == 254
        assert account.pinned_bytes == 2 * 3 * 5
        assert residents.predict(["a", "b", "a"]) == account

    def test_private_activations_add_up(self):
        residents = Residents(None, 2, shared=False)
        for name, arena in (("a", 100), ("b", 60)):
            residents.add(name, Footprint(arena_bytes=arena))
            load(residents, name)
        assert residents.charged.total_bytes == 320

    def test_a_model_is_charged_from_the_begin_of_its_load_to_the_end_of_its_eviction(self):
        residents = pool(a=40)
        seen = [residents.charged.total_bytes]
        for step in (
            lambda: residents.begin_load("a", 0),
            lambda: residents.loaded("a", 0, 1),
            lambda: residents.begin_eviction("a"),
            lambda: residents.evicted("a"),
        ):
            step()
            seen.append(residents.charged.total_bytes)
        assert seen == [0, 40, 40, 40, 0]

    def test_what_was_measured_takes_the_place_of_what_was_predicted(self):
        residents = pool(a=40, loaded=["a"])
        residents.correct("a", Footprint(55))
        assert residents.charged.weights_bytes == 55


class TestVictims:
    def test_nobody_leaves_where_there_is_room(self):
        assert pool(a=50, b=50, loaded=["a"]).room_for("b", 9) == Fits()

    def test_the_least_recently_used_leaves(self):
        residents = pool(a=50, b=50, c=50, loaded=["a", "b"])
        residents.use("a", 5)
        residents.done("a", 6)
        assert residents.room_for("c", 9) == Evict(("b",))

    def test_one_with_work_queued_leaves_last(self):
        residents = pool(a=50, b=50, c=50, loaded=["a", "b"])
        assert residents.room_for("c", 9, {"a"}) == Evict(("b",))
        assert residents.room_for("c", 9, {"a", "b"}) == Evict(("a",))

    def test_those_that_turn_out_not_to_be_needed_stay(self):
        residents = pool(a=10, b=10, c=80, d=80, loaded=["a", "b", "c"])
        assert residents.room_for("d", 9) == Evict(("c",))

    @pytest.mark.parametrize(("policy", "pinned"), [(EAGER, False), (LAZY, False), (LRU, True)])
    def test_those_that_stay_never_leave(self, policy, pinned):
        residents = pool(a=50, b=100, c=50, loaded=["a"])
        residents.add("stays", Footprint(50), policy, pinned)
        load(residents, "stays", 0)
        assert residents.room_for("c", 9) == Evict(("a",))
        refused = residents.room_for("b", 9)
        assert isinstance(refused, Never)
        assert "'stays'" in refused.message

    def test_who_has_the_largest_arena_leaves_where_only_that_makes_room(self):
        residents = Residents(85, 1)
        for name, weights, arena in (("small", 10, 10), ("large", 10, 60), ("new", 30, 30)):
            residents.add(name, Footprint(weights, arena))
        load(residents, "small", 1)
        load(residents, "large", 2)
        assert residents.room_for("new", 9) == Evict(("large",))

    def test_a_first_load_stays_for_some_load_times_while_it_has_work(self):
        residents = pool(a=100, b=100, loaded=["a"])
        assert residents.room_for("b", 4.9, {"a", "b"}) == Later(
            "a was loaded a moment ago and has work queued", 5.0
        )
        assert residents.room_for("b", 4.9, {"b"}) == Evict(("a",))
        assert residents.room_for("b", 5.0, {"a", "b"}) == Evict(("a",))

    def test_a_fast_load_stays_for_the_floor(self):
        residents = Residents(100, 1, dwell_multiple=4, dwell_floor_s=0.5)
        for name, load_s in (("fast", 0.01), ("slow", 1.0)):
            residents.add(name, Footprint(50))
            load(residents, name, 0, load_s)
        residents.add("new", Footprint(50))
        assert [residents.stay_s(name) for name in ("fast", "slow")] == [0.5, 4.0]
        assert residents.room_for("new", 0.4, {"fast", "slow"}) == Later(
            "fast was loaded a moment ago and has work queued", 0.5
        )

    def test_a_load_that_took_long_because_it_built_keeps_its_model_a_minute(self):
        residents = pool(a=100, b=100)
        load(residents, "a", 0, load_s=600)
        assert residents.room_for("b", 59.9, {"a"}) == Later(
            "a was loaded a moment ago and has work queued", 60.0
        )

    def test_page_locked_memory_has_a_limit_of_its_own(self):
        residents = Residents(None, 1, slots=2, pinned_limit_bytes=100)
        for name, pinned in (("small", 20), ("large", 50), ("larger", 51)):
            residents.add(name, Footprint(pinned_bytes=pinned))
        load(residents, "small")
        assert residents.room_for("large", 0) == Fits()
        refused = residents.room_for("larger", 0)
        assert isinstance(refused, Never)
        assert "102 bytes of page-locked memory" in refused.message
        assert "2 bytes too little" in refused.message
        assert "raise the limit of page-locked memory" in refused.message

    def test_a_model_counts_as_used_lately_for_its_stay_after_its_load_and_its_last_tile(self):
        residents = pool(a=50, b=50, c=50, loaded=["a", "b"])
        assert residents.lately(4.9) == {"a", "b"}
        assert residents.lately(5.0) == {"b"}
        residents.use("a", 6)
        residents.done("a", 7)
        assert residents.lately(10.9) == {"a"}


class TestWaiting:
    def test_a_running_tile_keeps_its_model(self):
        residents = pool(a=100, b=100, loaded=["a"])
        residents.use("a", 2)
        waits = residents.room_for("b", 9)
        assert waits == Later("only a could make room, running a tile", draining=("a",))
        with pytest.raises(ValueError, match="1 tiles of it are running"):
            residents.begin_eviction("a")
        residents.done("a", 3)
        assert residents.room_for("b", 9) == Evict(("a",))

    def test_all_that_must_leave_drain_where_one_of_them_runs_a_tile(self):
        residents = pool(a=40, b=40, c=20, d=80, loaded=["a", "b", "c"])
        residents.use("b", 5)
        waits = residents.room_for("d", 200)
        assert isinstance(waits, Later)
        assert set(waits.draining) == {"a", "b"}

    def test_who_drains_does_not_change_while_tiles_of_others_begin_and_end(self):
        residents = pool(a=50, b=50, d=50, loaded=["a", "b"])
        for name in ("a", "b", "b"):
            residents.use(name, 5)
        assert residents.room_for("d", 200) == Later(
            "only a could make room, running a tile", draining=("a",)
        )
        residents.use("a", 6)
        residents.done("a", 7)
        waits = residents.room_for("d", 200)
        assert isinstance(waits, Later)
        assert waits.draining == ("a",)

    def test_nobody_drains_where_the_stay_of_one_with_work_is_in_the_way_too(self):
        residents = pool(a=50, b=50, d=100, loaded=["a", "b"])
        residents.use("b", 2)
        waits = residents.room_for("d", 2, {"a"})
        assert isinstance(waits, Later)
        assert (waits.draining, waits.until_s) == ((), 5.0)

    def test_a_load_and_an_eviction_under_way_are_waited_for(self):
        residents = pool(a=100, b=100)
        residents.begin_load("a", 0)
        assert isinstance(residents.room_for("b", 0), Later)
        assert residents.room_for("a", 0) == Later("model 'a' is loading already")
        residents.loaded("a", 0, 1)
        residents.begin_eviction("a")
        assert residents.room_for("b", 0) == Later("an eviction is under way")
        residents.evicted("a")
        assert residents.room_for("b", 0) == Fits()

    def test_one_that_evicts_nobody_waits_for_an_eviction_under_way(self):
        residents = pool(a=100, loaded=["a"])
        residents.add("firm", Footprint(10), LAZY)
        residents.begin_eviction("a")
        assert residents.room_for("firm", 9) == Later("an eviction is under way")

    def test_a_failed_load_cools_down_twice_as_long_each_time_up_to_five_minutes(self):
        residents = pool(a=10)
        pauses, now_s = [], 0.0
        for _ in range(9):
            residents.begin_load("a", now_s)
            residents.failed("a", now_s, "no such file")
            until_s = residents["a"].retry_at_s
            assert residents.room_for("a", until_s - 0.1) == Later(
                "its last load failed: no such file", until_s
            )
            assert residents.room_for("a", until_s) == Fits()
            pauses.append(until_s - now_s)
            now_s = until_s
        assert pauses == [5, 10, 20, 40, 80, 160, 300, 300, 300]
        load(residents, "a", now_s)
        assert (residents["a"].failures, residents["a"].reason) == (9, "")
        residents.begin_eviction("a")
        residents.evicted("a")
        residents.begin_load("a", now_s)
        residents.failed("a", now_s, "again")
        assert residents["a"].retry_at_s == now_s + 5


class TestRefusals:
    def test_an_impossible_fit_has_the_numbers_and_the_remedies(self):
        mib = 2**20
        residents = Residents(400 * mib, 2)
        residents.add("big", Footprint(200 * mib, 100 * mib, 25 * mib, 0, 5 * mib))
        residents.add("kept", Footprint(90 * mib, 50 * mib), pinned=True)
        load(residents, "kept")
        residents.unaccounted_bytes = 10 * mib
        refused = residents.room_for("big", 0)
        assert isinstance(refused, Never)
        assert refused.message == (
            "model 'big' (lru) does not fit beside what stays, 'kept' (pinned): 550.0 MiB are needed "
            "(weights 290.0 MiB, contexts 10.0 MiB, activations 200.0 MiB, inputs and outputs 50.0 MiB, "
            "on 2 lanes; alone it takes 460.0 MiB), and the budget is 400.0 MiB less 10.0 MiB unaccounted "
            "for: 160.0 MiB too little; lower the max of its largest profile, use fewer than 2 lanes, "
            "raise the budget, or unpin kept"
        )

    @pytest.mark.parametrize("policy", [EAGER, LAZY])
    def test_eager_and_lazy_loads_evict_nobody(self, policy):
        residents = pool(a=100, loaded=["a"])
        residents.add("firm", Footprint(10), policy)
        refused = residents.room_for("firm", 9)
        assert isinstance(refused, Never)
        assert "load it with 'lru', which may evict others" in refused.message

    def test_unaccounted_memory_lowers_the_budget(self):
        residents = pool(a=60, b=50, loaded=["a"])
        residents.begin_eviction("a")
        residents.evicted("a", 51)
        assert residents.unaccounted_bytes == 51
        assert isinstance(residents.room_for("b", 0), Never)

    def test_a_load_without_room_is_a_mistake(self):
        residents = pool(a=60, b=50, loaded=["a"])
        with pytest.raises(ValueError, match="has no room"):
            residents.begin_load("b", 0)
        with pytest.raises(ValueError, match="is resident and cannot be loaded"):
            residents.begin_load("a", 0)
        with pytest.raises(ValueError, match="no tile running"):
            residents.done("a", 0)
        with pytest.raises(ValueError, match="known already"):
            residents.add("a", Footprint())
        assert residents["b"].state is ResidentState.ABSENT


class TestRoomToStay:
    def test_others_leave_for_a_model_that_turned_out_larger(self):
        residents = pool(a=50, b=50, loaded=["a", "b"])
        residents.correct("b", Footprint(60))
        assert residents.room_to_stay("b", 9) == Evict(("a",))
        residents.correct("b", Footprint(101))
        assert isinstance(residents.room_to_stay("b", 9), Never)
