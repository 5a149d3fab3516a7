import traceback
from base64 import b64encode
from zlib import compress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorq.failure import MAX_TEXT_BYTES, decode_text, job_failed, split_text

TRACEBACK = """Traceback (most recent call last):
  File "/srv/worker.py", line 3, in run
    check(x)
    ~~~~~^^^
  File "/srv/check.py", line 9, in check
    raise InputError("input 'x': got (2,)")
"""


def stored(text: str) -> bytes:
    return b64encode(compress(text.encode()))


def raised(error: BaseException) -> str:
    try:
        raise error
    except BaseException as caught:
        return "".join(traceback.format_exception(caught))


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        (TRACEBACK + "tensorq.errors.InputError: input 'x': got (2,)\n", "InputError", "input 'x': got (2,)"),
        (TRACEBACK + "KeyboardInterrupt\n", "KeyboardInterrupt", ""),
        (TRACEBACK + "ValueError: one\ntwo: three\n  four", "ValueError", "one\ntwo: three\n  four"),
        ("tensorq.errors.WireError: not a payload", "WireError", "not a payload"),
        (
            "Moved to FailedJobRegistry, due to AbandonedJobError, at 2026-01-01",
            "",
            "Moved to FailedJobRegistry, due to AbandonedJobError, at 2026-01-01",
        ),
        (
            "Work-horse terminated unexpectedly; waitpid returned 9",
            "",
            "Work-horse terminated unexpectedly; waitpid returned 9",
        ),
        ("", "", ""),
    ],
)
def test_the_end_of_a_traceback_is_kind_and_message(text: str, kind: str, message: str) -> None:
    assert split_text(text) == (kind, message)


def test_real_tracebacks_are_told_apart() -> None:
    assert split_text(raised(ValueError("a: b\n\nc"))) == ("ValueError", "a: b\n\nc")
    chained = RuntimeError("second")
    chained.__cause__ = KeyError("first")
    assert split_text(raised(chained)) == ("RuntimeError", "second")


def test_the_error_has_kind_message_and_the_whole_text() -> None:
    error = job_failed("j1", stored(TRACEBACK + "tensorq.errors.InputError: input 'x': bad"))
    assert (error.job_id, error.kind) == ("j1", "InputError")
    assert str(error) == "job j1 failed: InputError: input 'x': bad"
    assert error.detail.startswith("Traceback")


def test_no_reason_is_said_to_be_none() -> None:
    assert "RQ kept no reason" in str(job_failed("j1", None))


@pytest.mark.parametrize("broken", [b"\x00", b"AAAA", b"A", b"====", stored("x" * 99)[:20]])
def test_a_broken_reason_does_not_hide_the_failure(broken: bytes) -> None:
    assert str(job_failed("j1", broken)).startswith("job j1 failed: ")


@given(st.binary(max_size=200))
def test_any_bytes_give_text(data: bytes) -> None:
    assert isinstance(decode_text(data), str)
    split_text(decode_text(b64encode(compress(data))))


def test_a_small_reason_does_not_unpack_to_a_huge_one() -> None:
    assert len(decode_text(b64encode(compress(bytes(50_000_000))))) == MAX_TEXT_BYTES
