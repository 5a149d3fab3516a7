from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from math import inf, nan

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tensorq_engines.costs import assumed_costs
from tensorq_worker.planner import Tiling

LADDERS = [(1, 8, 32), (1, 2, 4, 8, 16, 32, 64), (4,), (3, 5, 17), (1,), (8, 32), (2, 3)]

ladders = st.sets(st.integers(1, 24), min_size=1, max_size=5).map(sorted)
# Small whole numbers, so that costs tie often; halves and thirds of them are no exact binary fractions.
costs = st.one_of(
    st.integers(1, 12).map(float),
    st.integers(1, 60).map(lambda number: number / 10),
    st.floats(0.01, 100),
)


@st.composite
def tables(draw):
    sizes = draw(ladders)
    if draw(st.booleans()):
        return {size: draw(costs) for size in sizes}
    # A row costs the same at most sizes, so that many tilings tie.
    return {size: float(size + draw(st.sampled_from([0, 0, 0, 1]))) for size in sizes}


def tiling_of(table):
    return Tiling(sorted(table), table)


def exact(table):
    """The costs as whole numbers of one unit, so that equal sums are equal."""
    unit = max(Fraction(cost).denominator for cost in table.values())
    return {size: int(Fraction(cost) * unit) for size, cost in table.items()}


def brute(table, rows):
    """Cost and launches of the cheapest cover, by trying every multiset of sizes without a tile to spare."""
    sizes, whole = sorted(table), exact(table)

    @lru_cache(None)
    def best(need, index):
        if need <= 0:
            return 0, 0
        size, found = sizes[index], None
        for count in range(-(-need // size) + 1):
            if index == 0 and count * size < need:
                continue
            cost, launches = best(need - count * size, index - 1) if count * size < need else (0, 0)
            one = (cost + count * whole[size], launches + count)
            found = one if found is None else min(found, one)
        return found

    return best(rows, len(sizes) - 1)


def full_table(table, rows):
    """The same for all numbers of rows up to ``rows``, by dynamic programming without a window."""
    whole, best = exact(table), [(0, 0)]
    for need in range(1, rows + 1):
        rest = ((size, best[max(0, need - size)]) for size in table)
        best.append(min((whole[size] + cost, launches + 1) for size, (cost, launches) in rest))
    return best


def total(table, sizes):
    whole = exact(table)
    return sum(whole[size] for size in sizes), len(sizes)


@given(tables(), st.integers(1, 64))
@example({8: 1.0, 32: 4.5}, 32)
@example({1: 1.0, 2: 2.0}, 6)
@example({1: 1.0, 3: 3.0, 4: 4.0}, 6)
def test_no_other_tiling_is_cheaper_or_as_cheap_in_fewer_launches(table, rows):
    sizes = tiling_of(table).sizes(rows)
    assert sum(sizes) >= rows
    assert total(table, sizes) == brute(table, rows)


@settings(max_examples=60)
@given(tables())
@example({7: 1.0, 24: 3.5, 23: 3.4})
@example({1: 1.0, 13: 2.0, 24: 3.0})
def test_cutting_off_the_best_size_beyond_the_window_loses_nothing(table):
    tiling, best = tiling_of(table), full_table(table, 400)
    for rows in range(1, 401):
        assert total(table, tiling.sizes(rows)) == best[rows], rows


@given(tables(), st.integers(1, 400))
def test_tiles_are_of_the_ladder_largest_first_and_none_is_to_spare(table, rows):
    sizes = tiling_of(table).sizes(rows)
    assert set(sizes) <= set(table)
    assert all(a >= b for a, b in pairwise(sizes))
    assert sum(sizes) >= rows
    assert sum(sizes[:-1]) < rows


@given(tables(), st.integers(1, 400))
def test_running_the_next_tile_again_and_again_costs_what_the_tiling_does(table, rows):
    tiling = tiling_of(table)
    assert tiling.next_size(rows) == tiling.sizes(rows)[0]
    cost_ms, left, ran = tiling.cost_ms(rows), rows, []
    while left > 0:
        ran.append(tiling.next_size(left))
        left -= ran[-1]
    assert total(table, ran) == total(table, tiling.sizes(rows))
    assert cost_ms == pytest.approx(sum(table[size] for size in ran))


@given(tables(), st.lists(st.integers(1, 400), max_size=20))
def test_answers_do_not_depend_on_what_was_asked_before(table, asked):
    tiling = tiling_of(table)
    assert [tiling.sizes(rows) for rows in asked] == [tiling_of(table).sizes(rows) for rows in asked]


@pytest.mark.parametrize("ladder", LADDERS, ids=str)
def test_the_window_is_small(ladder):
    tiling = Tiling(ladder, assumed_costs(ladder))
    assert tiling.window <= len(ladder) * ladder[-1] ** 2 / 4


def test_a_large_tile_that_is_dearer_than_small_ones_is_not_used():
    tiling = Tiling((1, 8, 32), {1: 1.0, 8: 2.0, 32: 8.5})
    assert tiling.sizes(32) == (8, 8, 8, 8)
    assert tiling.sizes(1000) == (8,) * 125
    assert tiling.cost_ms(1000) == 250


def test_padding_is_used_where_it_is_cheaper():
    assert Tiling((1, 8), assumed_costs((1, 8))).sizes(7) == (8,)
    assert Tiling((1, 8), {1: 1.0, 8: 100.0}).sizes(7) == (1,) * 7
    assert Tiling((4,), {4: 1.0}).sizes(0) == ()


@given(tables(), st.integers(1, 100))
def test_a_single_tile_covers_at_the_least_cost_where_one_can(table, rows):
    size = tiling_of(table).covering_size(rows)
    fits = [(table[size], size) for size in table if size >= rows]
    assert size == (min(fits)[1] if fits else max(table))


@given(tables(), st.integers(1, 30))
def test_more_rows_pay_where_a_row_gets_cheaper_and_no_fewer_do(table, rows):
    tiling, best = tiling_of(table), full_table(table, 64)
    wanted = tiling.paying_rows(rows)
    cheaper = [
        more for more in range(rows + 1, max(table) + 1) if best[more][0] * rows < best[rows][0] * more
    ]
    assert wanted == (cheaper[0] if cheaper else None)


@pytest.mark.parametrize("cost", [0.0, -1.0, nan, inf, None])
def test_a_cost_that_is_none_is_refused(cost):
    table = {1: 1.0} if cost is None else {1: 1.0, 8: cost}
    with pytest.raises(ValueError, match=r"sizes \[1, 8\].*positive and finite"):
        Tiling((1, 8), table)
    with pytest.raises(ValueError, match="at least one size"):
        Tiling((), {})
