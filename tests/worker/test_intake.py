import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fixtures.jobs import claimed
from tensorq import wire
from tensorq.errors import InputError, WireError
from tensorq.signature import Signature, TensorSpec
from tensorq_worker.intake import Intake

X = TensorSpec("x", "float32", ("n", 3, "w"))
MASK = TensorSpec("mask", "bool", ("n",))
Y = TensorSpec("y", "float32", ("n",))
NET = Signature((X, MASK), (Y,))
GOOD = {"x": np.ones((2, 3, 4), np.float32), "mask": np.ones(2, np.bool_)}


@pytest.fixture
def intake():
    return Intake("net", NET)


def test_a_good_job_is_accepted_with_views_of_its_payload(intake):
    job = claimed(GOOD)
    run = intake.accept(job)
    assert (run.job, run.rows, run.row_shapes) == (job, 2, ((3, 4), ()))
    np.testing.assert_array_equal(run.tensors["x"], GOOD["x"])
    assert not run.tensors["x"].flags.writeable
    assert not run.tensors["x"].flags.owndata


def test_inputs_in_another_order_are_staged_alike(intake):
    runs = [intake.accept(claimed(dict(pairs))) for pairs in (GOOD.items(), reversed(GOOD.items()))]
    assert runs[0].row_shapes == runs[1].row_shapes
    np.testing.assert_array_equal(runs[0].tensors["mask"], runs[1].tensors["mask"])


def test_a_model_without_a_batch_axis_has_one_row_a_job():
    spec = TensorSpec("x", "float32", (3,))
    run = Intake("net", Signature((spec,), (spec,), None)).accept(claimed({"x": np.ones(3, np.float32)}))
    assert (run.rows, run.row_shapes) == (1, ((3,),))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"x": np.ones((2, 3, 4))}, "'x': got dtype float64, expected float32"),
        ({"x": np.ones((2, 5, 4), np.float32)}, r"'x': got shape \(2, 5, 4\), expected \(rows, 3, w\)"),
        ({"x": np.ones((3, 4), np.float32)}, "one row needs a leading axis"),
        ({"x": np.ones((0, 3, 4), np.float32), "mask": np.ones(0, np.bool_)}, "zero rows"),
        ({"x": np.ones((2, 3, 0), np.float32)}, "an axis of length 0"),
        ({"mask": np.ones(3, np.bool_)}, "inputs differ in rows"),
        ({"extra": np.ones(2)}, "unknown input 'extra'"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_bad_input_is_refused_by_name(intake, changes, words):
    with pytest.raises(InputError, match=words):
        intake.accept(claimed(GOOD | changes))
    assert intake.accept(claimed(GOOD)).rows == 2


def test_a_missing_input_is_named(intake):
    with pytest.raises(InputError, match="missing input 'mask'"):
        intake.accept(claimed({"x": GOOD["x"]}))


@pytest.mark.parametrize(
    "payload", [b"", b"\x80", b"\xff" * 40, wire.pack(GOOD)[:-1], wire.pack(GOOD) + b"x"]
)
def test_bytes_that_are_no_payload_are_refused(intake, payload):
    with pytest.raises(WireError):
        intake.accept(claimed(payload=payload))


def test_a_payload_that_is_gone_says_so(intake):
    with pytest.raises(WireError, match="not in Redis: it expired, was deleted or was evicted"):
        intake.accept(claimed())


def test_a_job_on_another_models_queue_is_refused(intake):
    with pytest.raises(InputError, match="marked for model 'other' but waits on queue 'net@high'"):
        intake.accept(claimed(GOOD, model="other", queue="net@high"))


def test_what_another_model_accepted_is_checked_again(intake):
    intake.accept(claimed(GOOD))
    with pytest.raises(InputError, match="missing input 'z'"):
        Intake("net", Signature((X, MASK, TensorSpec("z", "bool", ("n",))), (Y,))).accept(claimed(GOOD))


# Layouts of the same size as the good ones, or nearly: names, dtypes and shapes are shuffled about.
_names = st.sampled_from(["x", "y", "mask"])
_arrays = st.builds(
    lambda dtype, shape, fill: np.full(shape, fill, dtype),
    st.sampled_from(["float32", "int32", "uint32", "int8", "uint8", "bool"]),
    st.sampled_from([(1, 3, 2), (2, 3, 1), (1, 2, 3), (3, 2), (6,), (1,), (2,), (2, 3), (1, 1)]),
    st.integers(0, 1),
)
_jobs = st.dictionaries(_names, _arrays, min_size=1, max_size=3)


@given(st.lists(st.tuples(_jobs, st.binary(max_size=3), st.integers(0, 200)), max_size=8))
def test_what_was_accepted_before_cannot_let_a_bad_payload_through(jobs):
    """One intake with its memory decides as one that has never seen anything does."""
    intake = Intake("net", NET)
    intake.accept(claimed({"x": np.ones((1, 3, 2), np.float32), "mask": np.ones(1, np.bool_)}))
    for tensors, noise, place in jobs:
        payload = bytearray(wire.pack(tensors))
        payload[place : place + len(noise)] = noise[: max(0, len(payload) - place)]
        remembered, fresh = _verdict(intake, bytes(payload)), _fresh_verdict(bytes(payload))
        assert remembered == fresh


def _verdict(intake: Intake, payload: bytes) -> object:
    try:
        run = intake.accept(claimed(payload=payload))
    except (InputError, WireError) as exc:
        return str(exc)
    arrays = {name: (a.dtype, a.shape, a.tobytes()) for name, a in run.tensors.items()}
    return run.rows, run.row_shapes, arrays


def _fresh_verdict(payload: bytes) -> object:
    wire._seen.clear()
    return _verdict(Intake("net", NET), payload)
