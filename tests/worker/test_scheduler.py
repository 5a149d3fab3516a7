from hypothesis import given
from hypothesis import strategies as st

from tensorq_worker.scheduler import Candidate, pick, soonest_ms

ages = st.floats(0, 1e6)
waits = st.one_of(st.just(0.0), st.floats(0, 1e3))
candidates = st.lists(st.builds(Candidate, st.integers(), ages, waits))


def test_the_ready_candidate_with_the_oldest_job_is_next():
    ready, older, waiting = Candidate("a", 5.0, 0.0), Candidate("b", 6.0, 0.0), Candidate("c", 7.0, 1.0)
    assert pick([ready, older, waiting]) is older


def test_nothing_is_picked_while_all_wait():
    assert pick([Candidate("a", 5.0, 1.0)]) is None
    assert pick([]) is None


def test_the_first_to_become_ready_says_how_long_to_sleep():
    assert soonest_ms([Candidate("a", 0, 3.0), Candidate("b", 0, 2.0), Candidate("c", 0, 0.0)]) == 2.0
    assert soonest_ms([Candidate("c", 0, 0.0)]) is None
    assert soonest_ms([]) is None


@given(candidates)
def test_no_ready_candidate_is_older_than_the_one_picked(found):
    ready = [one for one in found if one.wait_ms <= 0]
    chosen = pick(found)
    assert (chosen is None) == (not ready)
    if chosen is not None:
        assert chosen in ready
        assert chosen.age_ms == max(one.age_ms for one in ready)


def test_a_busy_model_does_not_starve_another():
    ages, turns = {"busy": 0.0, "rare": 0.0}, []
    for _ in range(20):
        chosen = pick([Candidate(key, age, 0.0) for key, age in ages.items()])
        turns.append(chosen.key)
        # The busy model's next job is always younger than what the other one has waiting.
        ages = {key: age + 1.0 for key, age in ages.items()} | {chosen.key: 0.0}
    assert turns.count("rare") == 10
