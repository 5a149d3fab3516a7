import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorq_engines.costs import assumed_costs
from tensorq_worker.planner import Tiling, wait_ms

TILING = Tiling((1, 8, 32), assumed_costs((1, 8, 32)))
rates = st.one_of(st.none(), st.floats(0, 100))


@pytest.mark.parametrize(
    ("rows", "age_ms", "expected"),
    [(31, 0.0, 5.0), (31, 2.0, 3.0), (31, 5.0, 0.0), (31, 99.0, 0.0), (32, 0.0, 0.0), (100, 0.0, 0.0)],
)
def test_at_an_unknown_rate_waits_up_to_the_delay_for_a_full_largest_tile(rows, age_ms, expected):
    assert wait_ms(rows, TILING, age_ms, 5.0, None) == expected


@pytest.mark.parametrize(
    ("rows", "rate", "expected"),
    [
        # 5 rows run as a tile of 8: one row more is free.
        (5, 1.0, 1.0),
        (5, 0.1, 0.0),
        # A full tile of 8 costs 1.5 a row; less than that begins with 25 rows in one tile of 32.
        (8, 17 / 4, 4.0),
        (8, 3.0, 0.0),
        # Whatever the rate, it is looked at again before long, and never later than the delay.
        (31, 1000.0, 0.25),
        (5, 0.21, 1 / 0.21),
        (5, 0.0, 0.0),
    ],
)
def test_waits_only_for_as_many_rows_as_make_a_row_cheaper(rows, rate, expected):
    assert wait_ms(rows, TILING, 0.0, 5.0, rate) == pytest.approx(expected)


def test_where_no_larger_tile_is_cheaper_by_the_row_a_full_one_runs_at_once():
    tiling = Tiling((1, 8, 32), {1: 1.0, 8: 2.0, 32: 8.5})
    assert wait_ms(8, tiling, 0.0, 5.0, 1000.0) == 0


@given(st.integers(1, 40), st.floats(0, 10), st.floats(0, 10), rates)
def test_never_waits_past_the_delay_nor_with_a_full_largest_tile(rows, age_ms, delay_ms, rate):
    wait = wait_ms(rows, TILING, age_ms, delay_ms, rate)
    assert 0 <= wait <= max(0.0, delay_ms - age_ms)
    assert wait == 0 or rows < TILING.largest


@given(st.integers(1, 31), st.floats(0, 10), st.floats(0.001, 100), st.floats(1, 10))
def test_a_faster_rate_never_ends_a_wait_that_a_slower_one_begins(rows, delay_ms, rate, times):
    if wait_ms(rows, TILING, 0.0, delay_ms, rate):
        assert wait_ms(rows, TILING, 0.0, delay_ms, rate * times)
