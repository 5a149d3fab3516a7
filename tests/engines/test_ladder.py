from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from tensorq.signature import Signature, TensorSpec
from tensorq_engines import InputRange, Profile, ShapeRefused, derive_ladder
from tensorq_engines.base.admission import admit, sizes_for

LENGTHS = st.integers(1, 64)


def signature(first="N", batch_axis=0):
    return Signature(
        (TensorSpec("x", "float32", (first, "W")),), (TensorSpec("y", "float32", (first,)),), batch_axis
    )


@st.composite
def profiles(draw):
    found = []
    for _ in range(draw(st.integers(1, 4))):
        rows, width = (sorted(draw(st.tuples(LENGTHS, LENGTHS, LENGTHS))) for _ in range(2))
        found.append(Profile((InputRange("x", *zip(rows, width, strict=True)),)))
    return found


@given(profiles())
def test_a_ladder_ascends_and_holds_exactly_the_profiles_sizes(some):
    ladder = derive_ladder(some, signature())
    assert all(low < high for low, high in pairwise(ladder))
    assert set(ladder) == {
        shape[0] for item in some for shape in (item.ranges[0].min, item.ranges[0].opt)
    } | {item.ranges[0].max[0] for item in some}


@given(profiles(), LENGTHS)
def test_a_fixed_batch_or_none_leaves_one_size_whatever_the_profiles(some, rows):
    assert derive_ladder(some, signature(rows)) == (rows,)
    assert derive_ladder(some, signature(batch_axis=None)) == (1,)


def test_without_profiles():
    assert derive_ladder([], signature()) == (1, 8, 32)


@given(profiles())
def test_every_size_of_a_ladder_is_admitted_for_some_row(some):
    ladder = derive_ladder(some, signature())
    served = set()
    for item in some:
        served |= set(sizes_for("m", signature(), some, ladder, {"x": (item.ranges[0].opt[1],)}))
    assert served == set(ladder)


@given(profiles(), LENGTHS, LENGTHS)
def test_sizes_for_rows_are_those_whose_tile_is_admitted(some, width, rows):
    ladder = derive_ladder(some, signature())
    try:
        sizes = sizes_for("m", signature(), some, ladder, {"x": (width,)})
    except ShapeRefused:
        sizes = ()
    inside = [item.ranges[0] for item in some if item.ranges[0].min[1] <= width <= item.ranges[0].max[1]]
    assert sizes == tuple(size for size in ladder if any(r.min[0] <= size <= r.max[0] for r in inside))
    admitted = any(r.min[0] <= rows <= r.max[0] for r in inside)
    try:
        admit("m", signature(), some, {"x": (rows, width)})
    except ShapeRefused:
        assert not admitted
    else:
        assert admitted
