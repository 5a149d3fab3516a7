"""The account against the driver's."""

from hypothesis import given
from hypothesis import strategies as st

from tensorq_engines import Integrity
from tensorq_engines.residency.account import Account
from tensorq_engines.residency.ledger import Ledger, Reading

MIB = 2**20


def evict(ledger, unaccounted, before, after):
    unaccounted = ledger.settle(Reading(*before), unaccounted)
    return ledger.settle(Reading(*after), unaccounted, evicted=True)


def test_what_the_driver_keeps_after_an_eviction_is_unaccounted_until_it_is_given_back():
    ledger = Ledger()
    assert ledger.settle(Reading(0, 1000), 0) == 0
    unaccounted = evict(ledger, 0, (50, 1050), (0, 1020))
    assert unaccounted == 20
    assert (unaccounted := ledger.settle(Reading(0, 1005), unaccounted)) == 5
    assert ledger.settle(Reading(0, 1000), unaccounted) == 0


def test_what_the_runtime_or_another_process_takes_is_not_the_models():
    ledger = Ledger()
    ledger.settle(Reading(0, 1000), 0)
    assert ledger.settle(Reading(10, 9000), 0) == 0
    assert evict(ledger, 0, (10, 9000), (0, 8990)) == 0
    assert ledger.driver_bytes(Reading(0, 8990)) == 7990


def test_a_new_baseline_keeps_what_is_unaccounted():
    ledger = Ledger()
    ledger.settle(Reading(0, 1000), 0)
    ledger.rebase(Reading(30, 5050), 20)
    assert ledger.driver_bytes(Reading(30, 5050)) == 50
    assert ledger.settle(Reading(30, 5050), 20) == 20
    assert ledger.settle(Reading(30, 5035), 20) == 5


def test_nothing_is_unaccounted_where_nothing_can_tell():
    ledger = Ledger()
    ledger.settle(Reading(50, None), 0)
    assert evict(ledger, 0, (50, None), (0, None)) == 0
    assert ledger.driver_bytes(Reading(0, None)) is None


@given(st.lists(st.tuples(st.integers(1, 5 * MIB), st.integers(0, 2 * MIB)), min_size=1, max_size=60))
def test_engines_that_fit_into_what_the_driver_had_set_aside_do_not_add_up(loads):
    """Each load takes the driver less than it says, and its eviction gives as little back."""
    ledger, unaccounted = Ledger(), 0
    ledger.settle(Reading(0, 100 * MIB), 0)
    for says, takes in loads:
        unaccounted = ledger.settle(Reading(0, 100 * MIB), unaccounted)
        unaccounted = evict(ledger, unaccounted, (says, 100 * MIB + takes), (0, 100 * MIB))
        assert unaccounted == 0


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 200), st.booleans()), max_size=40))
def test_unaccounted_is_never_more_than_the_drift_nor_less_than_nothing(steps):
    ledger, unaccounted = Ledger(), 0
    ledger.settle(Reading(0, 100), 0)
    for taken, used, evicted in steps:
        before = unaccounted
        unaccounted = ledger.settle(Reading(taken, used), unaccounted, evicted=evicted)
        assert 0 <= unaccounted <= max(used - 100 - taken, 0)
        assert evicted or unaccounted <= before


def test_accounts_agree_within_16_mib_or_5_percent():
    def integrity(taken, driver):
        return Integrity(Account(), None, 0, taken * MIB, 0, driver if driver is None else driver * MIB)

    assert integrity(100, 116).agrees
    assert not integrity(100, 117).agrees
    assert integrity(950, 1000).agrees
    assert not integrity(949, 1000).agrees
    assert (integrity(100, 116).drift_bytes, integrity(100, None).drift_bytes) == (16 * MIB, 0)
    assert integrity(100, None).agrees
