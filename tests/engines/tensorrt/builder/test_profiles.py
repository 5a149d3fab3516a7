import pytest

from tensorq.signature import Signature, TensorSpec
from tensorq_engines import BuildFailed, Profile, derive_ladder
from tensorq_engines.base.profile_check import check_order, check_profiles
from tensorq_engines.tensorrt.builder.profiles import choose_profiles


def signature(*shapes, batch_axis=0):
    specs = tuple(TensorSpec(f"x{index}", "float32", shape) for index, shape in enumerate(shapes))
    return Signature(specs, (TensorSpec("y", "float32", ("n",)),), batch_axis)


def test_without_profiles_one_spans_the_ladder():
    free = signature(("n", 3), ("n",))
    assert choose_profiles("m", free, (), "one") == (
        Profile.of(x0=([1, 3], [8, 3], [32, 3]), x1=([1], [8], [32])),
    )


def test_a_profile_for_each_size_is_exact_in_rows_and_keeps_other_ranges():
    given = Profile.of(x0=([1, 64], [8, 320], [32, 960]))
    found = choose_profiles("m", signature(("n", "w")), [given], "ladder")
    assert found == tuple(Profile.of(x0=([n, 64], [n, 320], [n, 960])) for n in (1, 8, 32))


def test_profiles_that_spread_to_the_same_are_kept_once():
    given = [Profile.of(x0=([1], [4], [8])), Profile.of(x0=([8], [8], [16]))]
    found = choose_profiles("m", signature(("n",)), given, "ladder")
    assert [profile.rows() for profile in found] == [(n, n, n) for n in (1, 4, 8, 16)]


@pytest.mark.parametrize("spread", ["one", "ladder"])
def test_the_ladder_is_the_same_either_way_and_profiles_fit_the_signature(spread):
    free = signature(("n", "w"), ("n", 4))
    given = [Profile.of(x0=([1, 8], [4, 16], [16, 32]), x1=([1, 4], [4, 4], [16, 4]))]
    found = choose_profiles("m", free, given, spread)
    assert derive_ladder(found, free) == (1, 4, 16)
    assert check_order(found, "") == check_profiles(found, free, "") == []


@pytest.mark.parametrize("spread", ["one", "ladder"])
@pytest.mark.parametrize("fixed", [signature((4, 3)), signature((3, 3), batch_axis=None)])
def test_fixed_shapes_need_one_profile_without_ranges(fixed, spread):
    assert choose_profiles("m", fixed, (), spread) == (Profile(()),)


def test_a_free_axis_without_a_range_is_refused_with_what_to_write():
    with pytest.raises(BuildFailed) as caught:
        choose_profiles("ocr", signature(("n", 3, "h", "w"), ("n", 2)), (), "one")
    text = str(caught.value)
    assert "model 'ocr': input x0: float32[n, 3, h, w] is free on axis 2, 3" in text
    assert (
        "[[profile]]\nx0 = { min = [1, 3, 32, 32], opt = [8, 3, 320, 320], max = [32, 3, 960, 960] }" in text
    )
    assert "x1 = { min = [1, 2], opt = [8, 2], max = [32, 2] }" in text


def test_a_model_without_a_batch_axis_is_refused_where_an_axis_is_free():
    with pytest.raises(BuildFailed, match="is free on axis 0"):
        choose_profiles("m", signature(("k",), batch_axis=None), (), "one")
