from functools import lru_cache
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tensorq_worker.planner import assumed_cost, covering_size, next_size, tiling, wait_ms

LADDERS = [(1, 8, 32), (1, 2, 4, 8, 16, 32, 64), (4,), (3, 5, 17), (1,), (8, 32), (2, 3)]
ladders = st.sets(st.integers(1, 40), min_size=1, max_size=5).map(lambda sizes: tuple(sorted(sizes)))


def best_cost(rows: int, ladder: tuple[int, ...]) -> tuple[float, int]:
    """Cost and launches of the cheapest tiling, by trying all."""

    @lru_cache(None)
    def best(need: int) -> tuple[float, int]:
        if need <= 0:
            return 0.0, 0
        rest = [(size, best(need - size)) for size in ladder]
        return min((assumed_cost(size) + cost, launches + 1) for size, (cost, launches) in rest)

    return best(rows)


@pytest.mark.parametrize("ladder", LADDERS, ids=str)
def test_what_is_left_beside_whole_largest_tiles_is_served_at_the_least_cost(ladder):
    for rows in range(1, 65):
        tiles = tiling(rows, ladder)
        whole, rest = divmod(rows, ladder[-1])
        assert tiles[:whole] == (ladder[-1],) * whole
        left = tiles[whole:]
        assert (sum(map(assumed_cost, left)), len(left)) == best_cost(rest, ladder), rows


@pytest.mark.parametrize("ladder", [(1, 8, 32), (1, 2, 4, 8, 16, 32), (8, 32), (1, 4, 16, 64)], ids=str)
def test_no_tiling_at_all_is_cheaper_on_ladders_whose_sizes_divide_one_another(ladder):
    for rows in range(1, 65):
        tiles = tiling(rows, ladder)
        assert (sum(map(assumed_cost, tiles)), len(tiles)) == best_cost(rows, ladder), rows


@given(st.integers(1, 500), ladders)
def test_tiles_are_of_the_ladder_largest_first_and_cover_the_rows(rows, ladder):
    tiles = tiling(rows, ladder)
    assert set(tiles) <= set(ladder)
    assert all(a >= b for a, b in pairwise(tiles))
    assert sum(tiles) >= rows
    assert sum(tiles[:-1]) < rows


@given(st.integers(1, 500), ladders)
def test_the_last_tile_is_never_larger_than_needed(rows, ladder):
    tiles = tiling(rows, ladder)
    assert tiles[-1] == covering_size(rows - sum(tiles[:-1]), ladder)


def test_equal_costs_go_to_fewer_launches():
    def cost(size: int) -> float:
        return float(size)

    assert tiling(6, (1, 2, 3, 100), cost) == (3, 3)
    assert tiling(4, (2, 4, 100), cost) == (4,)


def test_a_measured_cost_takes_the_place_of_the_assumed_one():
    assert tiling(7, (1, 8)) == (8,)
    assert tiling(7, (1, 8), {1: 1.0, 8: 100.0}.__getitem__) == (1,) * 7


@given(st.integers(1, 500), ladders)
@example(32, (1, 8, 32))
def test_the_next_tile_is_the_first_of_the_tiling(rows, ladder):
    assert next_size(rows, ladder) == tiling(rows, ladder)[0]


@given(st.integers(1, 100), ladders)
def test_the_covering_size_is_the_least_that_holds_the_rows(rows, ladder):
    size = covering_size(rows, ladder)
    assert size in ladder
    if rows <= ladder[-1]:
        assert size >= rows
        assert not any(rows <= smaller < size for smaller in ladder)
    else:
        assert size == ladder[-1]


@pytest.mark.parametrize(
    ("rows", "age_ms", "expected"),
    [(31, 0.0, 5.0), (31, 2.0, 3.0), (31, 5.0, 0.0), (31, 99.0, 0.0), (32, 0.0, 0.0), (100, 0.0, 0.0)],
)
def test_waits_up_to_the_delay_and_only_for_less_than_the_largest_tile(rows, age_ms, expected):
    assert wait_ms(rows, (1, 8, 32), age_ms, 5.0) == expected
