import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorq.signature import Signature, TensorSpec
from tensorq_engines import Buckets, Crop, Profile, check_buckets

IMAGE = TensorSpec("x", "float32", ("n", 3, "h", "w"))
MASK = TensorSpec("mask", "uint8", ("n", "w"))
PROBS = TensorSpec("probs", "float32", ("n", "t", 10))
UNKNOWN = TensorSpec("more", "float32", ("...",))
NET = Signature((IMAGE, MASK), (PROBS, UNKNOWN))


def only(buckets, signature=NET, profiles=()):
    problems = check_buckets(buckets, signature, profiles, "model.toml")
    assert len(problems) == 1, list(map(str, problems))
    return problems[0]


def test_buckets_that_fit_are_no_problem():
    crops = (Crop("probs", 1, 0.125), Crop("more", 7))
    profiles = [
        Profile.of(x=((1, 3, 8, 8), (1, 3, 8, 8), (4, 3, 8, 16)), mask=((1, 8), (1, 8), (4, 16))),
        Profile.of(x=((1, 3, 8, 32), (1, 3, 8, 32), (4, 3, 8, 64)), mask=((1, 32), (1, 32), (4, 64))),
    ]
    buckets = [Buckets("w", (8, 64), {"x": -1.5, "mask": 255}, crops), Buckets("x.2", (8,), {"x": -1.5})]
    assert check_buckets(buckets, NET, profiles, "model.toml") == []


@pytest.mark.parametrize(
    ("buckets", "key", "message", "remedy"),
    [
        (
            Buckets("W", (8,)),
            "buckets.W",
            "no such free axis in the inputs x: float32[n, 3, h, w]",
            "h, x.2, w, x.3",
        ),
        (Buckets("x.1", (8,)), "buckets.x.1", "no such free axis", "did you mean"),
        (Buckets("n", (8,)), "buckets.n", "this is the batch axis", "[[profile]]"),
        (Buckets("mask.0", (8,)), "buckets.mask.0", "this is the batch axis", "[[profile]]"),
        (Buckets("w", (8,), -1), "buckets.w.fill", "got -1, which mask: uint8[n, w] cannot", "mask ="),
        (Buckets("w", (8,), {"mask": 0.5}), "buckets.w.fill.mask", "got 0.5, which mask", "uint8"),
        (Buckets("w", (8,), math.nan), "buckets.w.fill", "got nan, which mask", "uint8"),
        (Buckets("w", (8,), {"x": 1e39}), "buckets.w.fill.x", "got 1e+39, which x", "float32"),
        (Buckets("w", (8,), {"mark": 1}), "buckets.w.fill.mark", "no input", "did you mean 'mask'?"),
        (Buckets("h", (8,), {"mask": 1}), "buckets.h.fill.mask", "no input", "use one of: x"),
        (
            Buckets("w", (8,), 0, (Crop("prob", 1),)),
            "buckets.w.crop.prob",
            "no such output",
            "'probs'",
        ),
        (
            Buckets("w", (8,), 0, (Crop("probs", 0),)),
            "buckets.w.crop.probs.axis",
            "got 0, which is the batch axis of probs: float32[n, t, 10]",
            "use one of: 1",
        ),
        (
            Buckets("w", (8,), 0, (Crop("probs", 2),)),
            "buckets.w.crop.probs.axis",
            "got 2, which is not a free axis",
            "use one of: 1",
        ),
        (
            Buckets("w", (8,), 0, (Crop("probs", 3),)),
            "buckets.w.crop.probs.axis",
            "got 3, which is not a free axis",
            "use one of: 1",
        ),
    ],
)
def test_what_the_model_does_not_take_is_told(buckets, key, message, remedy):
    problem = only([buckets])
    assert (problem.file, problem.key) == ("model.toml", key)
    assert message in problem.message
    assert remedy in problem.remedy


def test_a_length_outside_every_profile_is_told_with_the_ranges():
    profiles = [
        Profile.of(x=((1, 3, 8, 8), (1, 3, 8, 8), (4, 3, 8, 16)), mask=((1, 8), (1, 8), (4, 16))),
        # The image could be 32 wide, but not its mask.
        Profile.of(x=((1, 3, 8, 32), (1, 3, 8, 32), (4, 3, 8, 64)), mask=((1, 8), (1, 8), (4, 16))),
    ]
    problem = only([Buckets("w", (4, 8, 16, 17, 32))], profiles=profiles)
    assert problem.key == "buckets.w"
    assert "lengths [4, 17, 32] are outside all profiles, which take x [1..4, 3, 8, 8..16]" in problem.message


def test_two_rules_for_one_place_are_told():
    assert "axis 3 of x: float32[n, 3, h, w] is padded by buckets.w too" in str(
        only([Buckets("w", (8,)), Buckets("x.3", (8,))])
    )
    assert "buckets.h.fill: got 1 for x, but buckets.w fills it with 0" in str(
        only([Buckets("w", (8,)), Buckets("h", (8,), 1)])
    )
    crops = (Crop("probs", 1),)
    assert "axis 1 is cropped by buckets.w.crop.probs too" in str(
        only([Buckets("w", (8,), 0, crops), Buckets("h", (8,), 0, crops)])
    )


def test_the_first_axis_may_be_padded_where_it_is_no_batch_axis():
    spec = TensorSpec("x", "bool", ("w",))
    signature = Signature((spec,), (TensorSpec("y", "bool", ("w",)),), None)
    assert check_buckets([Buckets("w", (8,), True, (Crop("y", 0),))], signature, (), "") == []
    assert only([Buckets("w", (8,), 2)], signature).key == "buckets.w.fill"


@given(st.integers(0, 4000))
def test_the_kept_places_are_those_of_the_network_that_the_rule_describes(length):
    # PP-OCR's recognition: two strides of 2 that round up, and one that rounds down.
    rule = Crop("probs", 1, 0.125, 0.375, "floor")
    assert rule.places(length) == -(-length // 4) // 2
    assert Crop("y", 1, 0.5).places(length) == -(-length // 2)
    # A convolution without padding, of 3 places.
    assert Crop("y", 1, 1, -2).places(length) == max(0, length - 2)


@given(st.integers(1, 1000))
def test_scales_are_taken_as_decimals(tens):
    assert Crop("y", 1, 1.1).places(10 * tens) == 11 * tens


@given(st.sets(st.integers(1, 50), min_size=1), st.integers(1, 60))
def test_a_length_goes_to_the_least_bucket_that_holds_it(lengths, length):
    buckets = Buckets("w", tuple(sorted(lengths)))
    assert buckets.bucket(length) == min((n for n in lengths if n >= length), default=None)
