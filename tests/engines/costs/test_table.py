import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorq_engines.costs import CostTable, assumed_costs
from tensorq_engines.costs.table import MAX_SHAPES, OBSERVATIONS

LADDER = (1, 8, 32)
ROW, WIDE, WIDER = ((3, 48, 320),), ((3, 48, 640),), ((3, 48, 960),)

costs = st.floats(1e-3, 1e3)
by_size = st.dictionaries(st.integers(1, 64), costs, min_size=1, max_size=5)
row_shapes = st.lists(st.lists(st.integers(1, 40), max_size=3).map(tuple), min_size=1, max_size=2).map(tuple)
known = st.dictionaries(row_shapes, by_size, max_size=4)


def observe(table, *busy_ms, row_shapes=ROW, size=8):
    for one in busy_ms:
        table.observe(row_shapes, size, one)


class TestCosts:
    @given(known, row_shapes, st.sets(st.integers(1, 128), min_size=1))
    def test_are_positive_and_finite_whatever_was_measured(self, known, asked, ladder):
        found = CostTable(known).costs_ms(asked, ladder)
        assert set(found) == ladder
        assert all(0 < cost < math.inf for cost in found.values())

    @given(known)
    def test_that_were_measured_are_given_as_they_are(self, known):
        table = CostTable(known)
        assert table.known == known
        for shapes, sizes in known.items():
            assert table.costs_ms(shapes, sizes) == sizes

    @given(by_size)
    def test_of_sizes_in_between_lie_between(self, sizes):
        table = CostTable({ROW: sizes})
        for low, high in pairwise(sorted(sizes)):
            ends = sorted((sizes[low], sizes[high]))
            for cost in table.costs_ms(ROW, range(low, high)).values():
                assert ends[0] * (1 - 1e-9) <= cost <= ends[1] * (1 + 1e-9)

    def test_of_sizes_beyond_follow_the_last_slope_and_stay_positive(self):
        found = CostTable({ROW: {8: 2.0, 32: 5.0}}).costs_ms(ROW, (1, 16, 64))
        assert found == pytest.approx({1: 1.125, 16: 3.0, 64: 9.0})
        steep = CostTable({ROW: {8: 1.0, 32: 9.0}}).costs_ms(ROW, (1,))
        assert steep == pytest.approx({1: 0.125})
        falling = CostTable({ROW: {8: 4.0, 16: 1.0}}).costs_ms(ROW, (32,))
        assert falling == pytest.approx({32: 1.0})

    def test_where_nothing_was_measured_are_the_assumed_ones(self):
        assert CostTable().costs_ms(ROW, LADDER) == assumed_costs(LADDER) == {1: 5, 8: 12, 32: 36}

    def test_of_a_single_size_scale_the_assumed_ones(self):
        assert CostTable({ROW: {8: 6.0}}).costs_ms(ROW, LADDER) == pytest.approx({1: 2.5, 8: 6, 32: 18})

    def test_of_a_shape_in_between_lie_between_at_the_same_size(self):
        table = CostTable({ROW: {1: 1.0, 32: 4.0}, WIDER: {1: 2.0, 32: 16.0}})
        assert table.costs_ms(WIDE, (1, 32)) == pytest.approx({1: 1.5, 32: 10.0})

    def test_of_a_shape_go_by_those_where_this_very_size_was_measured(self):
        table = CostTable({ROW: {1: 1.0, 32: 4.0}, WIDER: {8: 3.0, 32: 16.0}})
        assert table.costs_ms(WIDE, (8,)) == pytest.approx({8: 2.0})

    def test_of_a_shape_of_which_one_size_is_known_are_scaled_by_it(self):
        table = CostTable({ROW: {1: 1.0, 32: 4.0}, WIDER: {1: 2.0, 32: 16.0}, WIDE: {32: 20.0}})
        assert table.costs_ms(WIDE, (1, 32)) == pytest.approx({1: 3.0, 32: 20.0})

    @pytest.mark.parametrize("bad", [{8: 0.0}, {8: -1.0}, {8: math.nan}, {8: math.inf}, {0: 1.0}])
    def test_that_are_none_are_refused(self, bad):
        with pytest.raises(ValueError, match="positive"):
            CostTable({ROW: bad})


class TestObserve:
    def test_moves_a_cost_only_after_enough_and_only_when_far_off(self):
        table = CostTable({ROW: {8: 2.0}})
        before = table.version
        observe(table, *[2.19] * 3 * OBSERVATIONS)
        observe(table, *[4.0] * (OBSERVATIONS - 1))
        assert (table.version, table.known) == (before, {ROW: {8: 2.0}})
        observe(table, 4.0)
        assert (table.version, table.known) == (before + 1, {ROW: {8: 4.0}})

    def test_is_not_moved_by_a_few_slow_tiles(self):
        table = CostTable({ROW: {8: 2.0}})
        before = table.version
        observe(table, *([2.0, 2.0, 90.0] * OBSERVATIONS))
        assert table.version == before

    def test_makes_a_cost_known_that_was_not(self):
        table = CostTable({ROW: {8: 2.0}})
        observe(table, *[1.0] * OBSERVATIONS, size=1)
        assert table.known == {ROW: {8: 2.0, 1: 1.0}}

    @pytest.mark.parametrize("busy_ms", [0.0, -1.0, math.nan, math.inf])
    def test_passes_over_what_is_no_time(self, busy_ms):
        table = CostTable()
        observe(table, *[busy_ms] * OBSERVATIONS)
        assert table.known == {}

    @given(st.floats(0.5, 2), st.lists(st.floats(-0.04, 0.04), min_size=5 * OBSERVATIONS))
    def test_noise_never_moves_a_cost_twice(self, true_ms, noise):
        table = CostTable({ROW: {8: 1.0}})
        before = table.version
        observe(table, *(true_ms * (1 + one) for one in noise))
        assert table.version <= before + 1
        assert table.known[ROW][8] == pytest.approx(true_ms, rel=0.16)

    def test_ever_new_shapes_do_not_add_up(self):
        table = CostTable()
        for width in range(MAX_SHAPES + 5):
            observe(table, *[1.0] * OBSERVATIONS, row_shapes=((width,),))
        assert len(table.known) == MAX_SHAPES
        for width in range(5000):
            observe(table, 1.0, row_shapes=((width,),))
        assert len(table._watched) <= 1024
