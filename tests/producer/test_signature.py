import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tensorq import InputError, Signature, TensorSpec


def signature(
    dtype: str = "float32", shape: tuple[int | str, ...] = ("n", 3), batch_axis: int | None = 0
) -> Signature:
    return Signature((TensorSpec("x", dtype, shape),), (), batch_axis)


PAIR = Signature((TensorSpec("image", "float32", ("n", 3, "h")), TensorSpec("mask", "bool", ("n", "h"))), ())


def refused(signature: Signature, array: object, *, cast: bool = False) -> str:
    with pytest.raises(InputError) as caught:
        signature.conform({"x": array}, cast=cast)  # type: ignore[dict-item]
    return str(caught.value)


def test_arrays_that_fit_are_the_same_objects_in_the_signatures_order() -> None:
    image, mask = np.zeros((2, 3, 5), np.float32), np.zeros((2, 5), bool)
    accepted = PAIR.conform({"mask": mask, "image": image})
    assert list(accepted) == ["image", "mask"]
    assert accepted["image"] is image
    assert accepted["mask"] is mask
    assert PAIR.rows(accepted) == 2


def test_a_symbol_binds_nothing() -> None:
    PAIR.conform({"image": np.zeros((2, 3, 5), np.float32), "mask": np.zeros((2, 9), bool)})


def test_unknown_and_missing_inputs_are_named() -> None:
    with pytest.raises(InputError, match="unknown input 'y': the model's inputs are x"):
        signature().conform({"x": np.zeros((1, 3), np.float32), "y": np.zeros(1)})
    with pytest.raises(InputError, match="missing input 'mask': the model's inputs are image, mask"):
        PAIR.conform({"image": np.zeros((2, 3, 5), np.float32)})


def test_inputs_of_different_rows_are_refused() -> None:
    with pytest.raises(InputError, match=r"differ in rows: \{'image': 2, 'mask': 3\}"):
        PAIR.conform({"image": np.zeros((2, 3, 5), np.float32), "mask": np.zeros((3, 5), bool)})


@pytest.mark.parametrize(
    ("array", "says"),
    [
        (
            np.zeros((1, 3)),
            "got dtype float64, expected float32; convert it with .astype('float32') or pass cast=True",
        ),
        (
            np.zeros(3, np.float32),
            "got shape (3,), expected (rows, 3); one row needs a leading axis: array[None]",
        ),
        (np.zeros((1, 4), np.float32), "got shape (1, 4), expected (rows, 3)"),
        (np.zeros((1, 3, 1), np.float32), "got shape (1, 3, 1), expected (rows, 3)"),
        (np.float32(1), "got float32, expected a numpy array"),
        (np.array(1, np.float32), "got shape (), expected (rows, 3)"),
        (np.zeros((0, 3), np.float32), "got shape (0, 3), zero rows; nothing to run"),
        ([[1, 2, 3]], "got list, expected a numpy array"),
        (np.array([["a", "b", "c"]]), "got dtype <U1, expected float32; only numbers and bools can be sent"),
        (np.array([[None] * 3]), "got dtype object, expected float32; only numbers and bools can be sent"),
        (np.zeros((1, 3), "f4,f4"), "only numbers and bools can be sent"),
        (np.array([["a"] * 3], np.dtypes.StringDType()), "only numbers and bools can be sent"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_remedy(array: object, says: str) -> None:
    assert says in refused(signature(), array)


def test_an_empty_axis_that_is_not_the_batch_is_refused() -> None:
    assert "an axis of length 0" in refused(signature(shape=("n", "w")), np.zeros((2, 0), np.float32))


def test_a_model_without_a_batch_axis_takes_its_whole_shape_and_counts_one_row() -> None:
    scalar = signature(shape=(), batch_axis=None)
    accepted = scalar.conform({"x": np.array(1, np.float32)})
    assert scalar.rows(accepted) == 1
    assert signature(shape=(2, "w"), batch_axis=None).conform({"x": np.ones((2, 9), np.float32)})
    assert "got shape (3, 9), expected (2, w)" in refused(
        signature(shape=(2, "w"), batch_axis=None), np.ones((3, 9), np.float32)
    )


def test_a_fixed_batch_takes_jobs_of_any_rows() -> None:
    fixed = signature(shape=(4, 3))
    assert fixed.fixed_rows == 4
    assert fixed.rows(fixed.conform({"x": np.zeros((1, 3), np.float32)})) == 1


def test_other_memory_layouts_fit() -> None:
    for array in (
        np.zeros((3, 2), np.float32).T,
        np.zeros((2, 6), np.float32)[:, ::2],
        np.zeros((2, 3), ">f4"),
    ):
        assert signature().conform({"x": array})["x"] is array


def test_nan_and_infinity_pass() -> None:
    signature().conform({"x": np.array([[np.nan, np.inf, -np.inf]], np.float32)})


@pytest.mark.parametrize(
    ("values", "dtype", "to"),
    [
        ([0.5, np.nan, np.inf], "float64", "float32"),
        ([1, 2, 3], "int64", "float32"),
        ([1, 2, 255], "int64", "uint8"),
        ([0.0, 1.0, 2.0], "float32", "int32"),
        ([0, 1, 0], "uint8", "bool"),
        ([True, False, True], "bool", "float32"),
        ([2**63 - 1, 0, 1], "uint64", "int64"),
        ([1, 2, 3], ">i4", "int64"),
        ([0.5, 1, 2], "float32", "complex64"),
        ([0.5j, 1, 2], "complex128", "complex64"),
    ],
)
def test_a_cast_that_keeps_every_value_is_done_when_asked_for(
    values: list[float], dtype: str, to: str
) -> None:
    array = np.array([values], dtype)
    assert "pass cast=True" in refused(signature(to), array)
    got = signature(to).conform({"x": array}, cast=True)["x"]
    assert got.dtype == to
    np.testing.assert_array_equal(got, array)


@pytest.mark.parametrize(
    ("values", "dtype", "to"),
    [
        ([0.1, 0, 0], "float64", "float32"),
        ([1e300, 0, 0], "float64", "float32"),
        ([2**24 + 1, 0, 0], "int64", "float32"),
        ([-(2**31), 0, 0], "int32", "float16"),
        ([-(2**63), 0, 0], "int64", "float16"),
        ([256, 0, 0], "int64", "uint8"),
        ([-1, 0, 0], "int8", "uint8"),
        ([-1, 0, 0], "int64", "uint64"),
        ([2**63, 0, 0], "uint64", "int64"),
        ([0.5, 0, 0], "float32", "int32"),
        ([np.nan, 0, 0], "float32", "int32"),
        ([-1.0, 0, 0], "float64", "uint64"),
        ([2, 0, 1], "uint8", "bool"),
        ([1j, 0, 1], "complex64", "float32"),
        ([1 + 0j, 0, 1], "complex128", "float64"),
    ],
)
def test_a_cast_that_would_change_a_value_is_refused(values: list[float], dtype: str, to: str) -> None:
    assert "do not survive the conversion" in refused(signature(to), np.array([values], dtype), cast=True)


NUMBERS = ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "c8"]


@given(st.sampled_from(NUMBERS), st.sampled_from(NUMBERS), st.data())
def test_a_cast_never_changes_a_value(dtype: str, to: str, data: st.DataObject) -> None:
    array = data.draw(hnp.arrays(dtype, (1, 3)))
    try:
        got = signature(np.dtype(to).name).conform({"x": array}, cast=True)["x"]
    except InputError:
        return
    for before, after in zip(array.ravel().tolist(), got.ravel().tolist(), strict=True):
        assert before == after or (before != before and after != after)


def test_the_signature_survives_its_dict() -> None:
    for one in (PAIR, signature(batch_axis=None)):
        assert Signature.from_dict(one.to_dict()) == one


def test_a_spec_reads_as_people_write_it() -> None:
    assert str(PAIR.inputs[0]) == "image: float32[n, 3, h]"
