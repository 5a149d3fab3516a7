"""Which profile runs a tile."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorq_engines import Profile, ShapeRefused
from tensorq_engines.tensorrt.profile_choice import choose_profile

lengths = st.integers(1, 64)


@st.composite
def profiles(draw):
    """One to five profiles of an input of two axes."""
    found = []
    for _ in range(draw(st.integers(1, 5))):
        low, opt, high = zip(
            *(sorted(draw(st.tuples(lengths, lengths, lengths))) for _ in range(2)), strict=True
        )
        found.append(Profile.of(x=(low, opt, high)))
    return found


def opt(profile):
    return profile.ranges[0].opt


def distance(profile, shape):
    return sum(abs(math.log(a / b)) for a, b in zip(opt(profile), shape, strict=True))


def above(profile, shape):
    return all(a >= b for a, b in zip(opt(profile), shape, strict=True))


@given(profiles(), st.tuples(lengths, lengths))
def test_what_is_chosen_admits_the_shapes_and_none_that_does_is_nearer(choices, shape):
    shapes = {"x": shape}
    admitting = [profile for profile in choices if profile.admits(shapes)]
    if not admitting:
        with pytest.raises(ShapeRefused, match="outside all profiles"):
            choose_profile(choices, shapes)
        return
    chosen = choices[choose_profile(choices, shapes)]
    assert chosen.admits(shapes)
    rivals = [profile for profile in admitting if above(profile, shape)] or admitting
    assert above(chosen, shape) or rivals is not admitting or not any(above(p, shape) for p in admitting)
    assert distance(chosen, shape) <= min(distance(profile, shape) for profile in rivals) + 1e-8


@given(profiles(), st.tuples(lengths, lengths))
def test_a_profile_whose_opt_is_the_shape_wins(choices, shape):
    tuned = Profile.of(x=((1, 1), shape, (64, 64)))
    index = choose_profile([*choices, tuned], {"x": shape})
    assert opt([*choices, tuned][index]) == shape


@given(profiles(), st.tuples(lengths, lengths), st.randoms())
def test_the_order_of_different_profiles_does_not_matter(choices, shape, random):
    choices = list({opt(profile): profile for profile in choices if profile.admits({"x": shape})}.values())
    if not choices:
        return
    first = choices[choose_profile(choices, {"x": shape})]
    random.shuffle(choices)
    second = choices[choose_profile(choices, {"x": shape})]
    assert first == second or math.isclose(distance(first, shape), distance(second, shape), abs_tol=1e-8)


@given(st.dictionaries(st.integers(0, 3), st.floats(0.01, 10), max_size=4))
def test_measured_time_breaks_ties_and_then_order(times):
    same = [Profile.of(x=((1,), (8,), (16 + extra,))) for extra in range(4)]
    chosen = choose_profile(same, {"x": (4,)}, times)
    assert chosen == min(range(4), key=lambda index: (times.get(index, math.inf), index))


def test_one_without_ranges_admits_everything():
    assert choose_profile([Profile(())], {"x": (3,)}) == 0


def test_an_opt_above_is_preferred_to_a_nearer_one_below():
    below, higher = (Profile.of(x=((1,), (length,), (64,))) for length in (8, 32))
    assert choose_profile([below, higher], {"x": (9,)}) == 1


def test_the_refusal_gives_the_ranges():
    choices = [Profile.of(x=((1, 8), (4, 16), (8, 32))), Profile.of(x=((1, 64), (1, 64), (2, 64)))]
    with pytest.raises(
        ShapeRefused, match=r"got x \[9, 8\].*x \[1\.\.8, 8\.\.32\] or x \[1\.\.2, 64\].*widen"
    ):
        choose_profile(choices, {"x": (9, 8)})
