from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorq_engines import Evict, Fits, Later, Never
from tensorq_worker.scheduler import Candidate, Choice, choose, patience_ms

STAY_MS = 100.0

ages = st.floats(0, 1e6)
waits = st.one_of(st.just(0.0), st.floats(0, 1e3))
stages = st.builds(
    Candidate,
    st.integers(),
    st.sampled_from("abcde"),
    ages,
    waits,
    tile_rows=st.integers(1, 32),
    tile_ms=st.floats(0.1, 50),
)


def stage(model, age_ms=1.0, wait_ms=0.0, **others):
    return Candidate(others.pop("key", model), model, age_ms, wait_ms, **others)


absent = partial(stage, resident=False, load_ms=20.0)


def answers(**by_model):
    """Room as `Residents.room_for` would give it; models that are not named must not be asked for."""
    return by_model.__getitem__


class TestTiles:
    def test_of_one_model_the_ready_stage_with_the_oldest_job_is_next(self):
        ready, older, waiting = (stage("m", age, wait) for age, wait in ((5, 0), (6, 0), (7, 1)))
        assert choose([ready, older, waiting]).tile is older

    @given(st.lists(stages.filter(lambda one: one.model == "a")))
    def test_no_ready_stage_of_a_single_model_is_older_than_the_one_chosen(self, found):
        ready = [one for one in found if one.wait_ms <= 0]
        chosen = choose(found).tile
        assert (chosen is None) == (not ready)
        if chosen is not None:
            assert chosen.age_ms == max(one.age_ms for one in ready)

    @given(st.lists(stages))
    def test_a_tile_is_chosen_whenever_a_stage_is_ready(self, found):
        assert (choose(found).tile in found) == any(one.wait_ms <= 0 for one in found)

    @pytest.mark.parametrize("names", ["mm", "mn"], ids=["one model", "two models"])
    def test_of_equal_age_a_full_tile_goes_before_a_partial_one(self, names):
        partial_tile = stage(names[0], key="partial", tile_rows=3, tile_ms=2.0)
        full = stage(names[1], key="full", tile_rows=8, tile_ms=2.0)
        assert choose([partial_tile, full]).tile is full
        assert choose([full, partial_tile]).tile is full

    def test_a_cheaper_row_is_worth_as_many_times_the_age(self):
        cheap = stage("cheap", 9.0, tile_rows=10, tile_ms=1.0)
        assert choose([cheap, stage("dear", 98.0, tile_ms=1.0)]).tile is cheap
        assert choose([cheap, stage("dear", 101.0, tile_ms=1.0)]).tile.key == "dear"

    def test_queues_that_are_due_go_first_the_one_that_has_waited_longest_before_all(self):
        patience = patience_ms(3 * STAY_MS, STAY_MS)
        busy = stage("busy", 1e9, tile_rows=32, unserved_ms=patience - 1)
        due = stage("due", tile_ms=50.0, unserved_ms=patience)
        older = stage("older", tile_ms=50.0, unserved_ms=patience + 1)
        assert choose([busy, due, older]).tile is older
        assert choose([busy, due, stage("older", unserved_ms=0.0)]).tile is due

    def test_a_tile_without_a_lane_or_a_loaded_model_is_not_launched(self):
        assert choose([stage("m", lane_free=False)]).tile is None
        assert choose([absent("m")], loading=["m"]) == Choice()

    def test_the_first_to_become_ready_says_when_to_look_again(self):
        waiting = [stage("a", wait_ms=3.0), stage("b", wait_ms=2.0), stage("c", wait_ms=0.0)]
        assert choose(waiting).again_ms == 2.0
        assert choose([]).again_ms is None
        assert choose([stage("a", wait_ms=4.0), stage("a", 0.5, wait_ms=3.0)]).again_ms == 3.0


class TestLoads:
    def test_what_fits_is_loaded_at_once_while_tiles_of_others_go_on(self):
        resident = stage("here")
        assert choose([resident, absent("new")], answers(new=Fits())) == Choice(resident, "new")

    def test_one_model_loads_at_a_time(self):
        found = [absent("new"), absent("other")]
        assert choose(found, answers(), loading=["other"]) == Choice()

    def test_a_load_is_paid_by_all_rows_that_wait(self):
        few, many = absent("few", 2.0, rows=2), absent("many", 1.0, rows=200)
        room = answers(few=Fits(), many=Fits())
        assert choose([few, many], room).load == "many"
        assert choose([absent("few", 200.0, rows=2), many], room).load == "few"

    def test_a_model_that_has_no_work_but_had_some_lately_leaves_only_for_one_that_is_due(self):
        room = answers(new=Evict(("idle",)))
        others = [stage("busy")]
        assert choose([*others, absent("new")], room).load == "new"
        assert choose([*others, absent("new")], room, lately=["idle"]).load is None
        assert choose([*others, absent("new", unserved_ms=STAY_MS)], room, lately=["idle"]).load == "new"

    def test_a_model_with_work_leaves_only_for_one_that_is_due_and_gets_no_tile_then(self):
        busy, room = stage("busy"), answers(new=Evict(("busy",)))
        early = absent("new", unserved_ms=STAY_MS / 2 - 1)
        assert choose([busy, early], room) == Choice(busy, None, 1.0)
        assert choose([busy, absent("new", unserved_ms=STAY_MS / 2)], room) == Choice(None, "new")

    def test_it_gets_its_own_tile_first_where_it_is_due_as_well_and_has_not_waited_less(self):
        room = answers(new=Evict(("busy",)))
        busy, new = stage("busy", unserved_ms=80.0), absent("new", unserved_ms=80.0)
        assert choose([busy, new], room) == Choice(busy, None)

    def test_of_those_due_only_the_one_that_has_waited_longest_is_loaded(self):
        found = [stage("busy"), absent("next", 1e9, unserved_ms=500.0), absent("first", unserved_ms=501.0)]
        assert choose(found, answers(first=Later("", 12.0)), now_s=11.0) == Choice(found[0], None, 1000.0)
        assert choose(found, answers(first=Fits())).load == "first"

    def test_one_whose_running_tiles_alone_stand_in_the_way_gets_no_more(self):
        busy, other = stage("busy", 9.0), stage("other")
        room = answers(new=Later("", draining=("busy",)))
        assert choose([busy, other, absent("new", unserved_ms=500.0)], room) == Choice(other, None)

    def test_a_model_that_can_never_fit_is_handed_over_to_be_told_so(self):
        assert choose([absent("big")], answers(big=Never("too big"))).load == "big"
        found = [absent("big"), stage("other")]
        assert choose(found, answers(big=Never("too big"))) == Choice(found[1], "big")
