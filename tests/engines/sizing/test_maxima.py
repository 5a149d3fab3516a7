import pytest

from tensorq.errors import ConfigError
from tensorq.signature import Signature, TensorSpec
from tensorq_engines import Profile
from tensorq_engines.sizing.maxima import Wanted, covering, exactly, list_maxima

IMAGE = Signature((TensorSpec("x", "float32", ("N", 3, "H", "W")),), (TensorSpec("y", "float32", ("N",)),), 0)
OWN = {"x": (4, 3, 48, 320)}


def shapes(signature, own, wanted):
    return [tuple(tile.values()) for tile in list_maxima("m", signature, own, wanted)]


def test_other_axes_are_those_of_the_models_own_profiles():
    found = shapes(IMAGE, OWN, Wanted((1, 8)))
    assert found == [((1, 3, 48, 320),), ((4, 3, 48, 320),), ((8, 3, 48, 320),)]


def test_free_axes_take_each_length_given_for_their_symbol():
    found = shapes(IMAGE, OWN, Wanted((8,), {"W": (320, 960), "H": (32,)}))
    assert found == [((8, 3, 32, 320),), ((8, 3, 32, 960),), ((4, 3, 48, 320),)]


def test_a_shape_given_for_an_input_needs_no_profile():
    found = shapes(IMAGE, None, Wanted((2,), tails={"x": ((3, 64, 64), (3, 112, 112))}))
    assert found == [((2, 3, 64, 64),), ((2, 3, 112, 112),)]


def test_inputs_have_the_same_rows():
    pair = Signature(
        (TensorSpec("a", "float32", ("N", 4)), TensorSpec("b", "int64", ("N", "L"))), IMAGE.outputs, 0
    )
    assert shapes(pair, None, Wanted((1, 2), {"L": (7,)})) == [((1, 4), (1, 7)), ((2, 4), (2, 7))]


def test_fixed_rows_and_models_without_rows_have_one_size():
    fixed = Signature((TensorSpec("x", "float32", (4, 3)),), (TensorSpec("y", "float32", (4, 3)),), 0)
    whole = Signature((TensorSpec("x", "float32", (3, 3)),), (TensorSpec("y", "float32", ()),), None)
    assert shapes(fixed, None, Wanted()) == [((4, 3),)]
    assert shapes(whole, None, Wanted()) == [((3, 3),)]


def test_a_free_axis_of_no_known_length_says_what_to_give():
    with pytest.raises(ConfigError, match=r"free on axis 2, .* or give --input x=3x640x640"):
        list_maxima("m", IMAGE, None, Wanted())


@pytest.mark.parametrize("tail", [(3, 48), (1, 48, 320), (2, 3, 48, 320)])
def test_a_shape_that_is_not_the_inputs_is_refused(tail):
    with pytest.raises(ConfigError, match="expected 3xHxW"):
        list_maxima("m", IMAGE, OWN, Wanted(tails={"x": (tail,)}))


def test_names_that_no_model_has_are_refused():
    Wanted(free={"W": (1,)}, tails={"x": ((1,),)}).expect_known([IMAGE])
    nameless = Signature((TensorSpec("x", "float32", ("N", "?")),), IMAGE.outputs, 0)
    for wanted in (Wanted(free={"N": (1,)}), Wanted(free={"?": (1,)}), Wanted(tails={"z": ((1,),)})):
        with pytest.raises(ConfigError, match="there are: "):
            wanted.expect_known([IMAGE, nameless])


def test_the_largest_tile_of_several_profiles_covers_each_and_its_profile_admits_it():
    profiles = [
        Profile.of(x=([1, 3, 8, 8], [1, 3, 8, 8], [32, 3, 16, 64])),
        Profile.of(x=([1, 3, 8, 8], [1, 3, 8, 8], [1, 3, 32, 32])),
    ]
    tile = covering(IMAGE, profiles)
    assert tile == {"x": (32, 3, 32, 64)}
    assert exactly(IMAGE, tile).admits(tile)
