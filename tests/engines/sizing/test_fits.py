from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from tensorq_engines import Footprint
from tensorq_engines.sizing.fits import EXACT_MODELS, fit

BYTES = st.integers(0, 50)
MODELS = st.dictionaries(
    st.sampled_from("abcdef"), st.builds(Footprint, BYTES, BYTES, BYTES, BYTES, BYTES), min_size=1
)


def total(models, names, lanes, shared):
    chosen = {name: models[name] for name in names}
    return fit(chosen, None, lanes, shared=shared, slots=2).account.total_bytes


def test_models_are_taken_in_the_order_given_and_a_later_one_may_still_fit():
    models = {"a": Footprint(60), "b": Footprint(50), "c": Footprint(40)}
    found = fit(models, 100, 1, shared=True, slots=2)
    assert (found.held, found.left, found.never, found.evicted) == (("a", "c"), ("b",), (), 1)


def test_activations_that_are_shared_count_once_a_lane():
    models = {name: Footprint(weights_bytes=10, arena_bytes=100) for name in "abc"}
    assert fit(models, 130, 1, shared=True, slots=2).left == ()
    assert fit(models, 229, 2, shared=True, slots=2).left == ("c",)
    assert fit(models, 230, 2, shared=True, slots=2).left == ()
    assert fit(models, 130, 1, shared=False, slots=2).held == ("a",)


def test_a_model_that_does_not_fit_alone_is_no_eviction():
    found = fit({"big": Footprint(200), "a": Footprint(50)}, 100, 1, shared=True, slots=2)
    assert (found.held, found.never, found.evicted) == (("a",), ("big",), 0)


@given(MODELS, st.integers(0, 300), st.integers(1, 3), st.booleans())
def test_what_is_held_fits_and_evictions_are_as_brute_force_finds(models, budget, lanes, shared):
    found = fit(models, budget, lanes, shared=shared, slots=2)
    assert total(models, found.held, lanes, shared) <= budget or not found.held
    for name in found.left:
        before = [held for held in found.held if list(models).index(held) < list(models).index(name)]
        assert total(models, [*before, name], lanes, shared) > budget
    sets = [names for count in range(len(models) + 1) for names in combinations(models, count)]
    most = max(len(names) for names in sets if not names or total(models, names, lanes, shared) <= budget)
    assert len(models) - len(found.never) - found.evicted == most
    assert (found.left == ()) == (total(models, models, lanes, shared) <= budget)


def test_very_many_models_are_not_tried_in_all_subsets():
    models = {f"m{index}": Footprint(10) for index in range(EXACT_MODELS * 3)}
    assert fit(models, 100, 1, shared=True, slots=2).evicted == len(models) - 10
