import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorq_worker.planner import ArrivalRate


def fed(every_ms, count, rows=1, start_ms=1000.0):
    rate = ArrivalRate()
    for n in range(count):
        rate.add(rows, start_ms + n * every_ms)
    return rate, start_ms + (count - 1) * every_ms


def test_is_unknown_until_enough_has_come_over_enough_time():
    rate, now_ms = fed(1, 7)
    assert rate.rows_per_ms(now_ms + 100) is None
    rate.add(1, now_ms + 1)
    assert rate.rows_per_ms(now_ms + 1) is None
    assert rate.rows_per_ms(now_ms + 100) is not None
    assert ArrivalRate().rows_per_ms(1e9) is None


@given(st.floats(0.1, 10), st.integers(1, 8), st.integers(250, 2000))
def test_of_steady_arrivals_is_theirs_also_before_the_memory_is_full(every_ms, rows, count):
    rate, now_ms = fed(every_ms, count, rows)
    assert rate.rows_per_ms(now_ms) == pytest.approx(rows / every_ms, rel=0.2)


def test_falls_while_nothing_comes_and_follows_a_change():
    rate, now_ms = fed(1, 500)
    before = rate.rows_per_ms(now_ms)
    assert rate.rows_per_ms(now_ms + 100) == pytest.approx(before / 2.718, rel=0.05)
    assert rate.rows_per_ms(now_ms + 2000) < 1e-6
    for n in range(50):
        rate.add(1, now_ms + 10 * n)
    assert rate.rows_per_ms(now_ms + 490) == pytest.approx(0.1, rel=0.2)


def test_arrivals_that_come_out_of_order_count_as_late():
    rate, now_ms = fed(1, 100)
    rate.add(1, now_ms - 50)
    assert rate.rows_per_ms(now_ms) == pytest.approx(1, rel=0.1)
