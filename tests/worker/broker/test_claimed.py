"""What the broker makes of job hashes that anybody may have written."""

import re
from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorq_worker.broker import Claimed

_SCRIPT = files("tensorq_worker.broker").joinpath("scripts/claim.lua").read_text()
FIELDS = re.findall(r"'(\w+)'", re.search(r"local FIELDS = \{(.*?)\}", _SCRIPT, re.DOTALL)[1])
NUMBERS = {
    "tensorq_bytes": "size_bytes",
    "tensorq_at_ms": "at_ms",
    "timeout": "timeout_s",
    "tensorq_deadline_ms": "deadline_ms",
    "tensorq_poison": "crashes",
}


def read(word=b"ok", **fields):
    assert set(fields) <= set(FIELDS)
    values = {"tensorq_model": b"net"} | fields
    return Claimed.from_reply([b"id", b"net", b"t1", word, b"...", [values.get(name) for name in FIELDS]])


def test_an_empty_hash_has_harmless_values():
    job = read()
    assert (job.job_id, job.queue, job.token, job.model, job.payload) == ("id", "net", "t1", "net", b"...")
    assert [getattr(job, name) for name in NUMBERS.values()] == [0] * len(NUMBERS)
    assert (job.client, job.result_ttl_s, job.alone, job.unusual) == ("", None, False, False)


@pytest.mark.parametrize(("field", "attribute"), NUMBERS.items())
def test_numbers_are_read(field, attribute):
    assert getattr(read(**{field: b"17"}), attribute) == 17


@pytest.mark.parametrize("field", [*NUMBERS, "result_ttl"])
@pytest.mark.parametrize(
    "garbage", [b"", b"x", b"1.5", b"nan", b"1e9", b"\xff\xfe", b"9" * 30, b"9" * 5000, b"None"]
)
def test_a_field_that_is_no_number_counts_as_absent(field, garbage):
    assert read(**{field: garbage}) == read()


@given(
    st.dictionaries(st.sampled_from([name for name in FIELDS if name != "status"]), st.binary(max_size=20))
)
def test_nothing_in_a_hash_breaks_the_claim(fields):
    job = read(**fields)
    assert isinstance(job.model, str)
    assert isinstance(job.client, str)
    assert all(isinstance(getattr(job, name), int) for name in NUMBERS.values())


def test_a_function_job_has_no_model():
    assert read(tensorq_model=None).model == ""


def test_a_suspect_runs_alone():
    assert read(b"alone").alone


@pytest.mark.parametrize("field", ["success_callback_name", "webhooks", "repeats_left", "rate_limit_key"])
def test_what_rqs_handlers_must_end_is_unusual(field):
    assert read(**{field: b"something"}).unusual


@pytest.mark.parametrize(
    ("text", "ttl", "unusual"), [(b"0", 0, True), (b"60", 60, False), (b"-1", -1, False)]
)
def test_a_result_that_is_not_kept_is_unusual(text, ttl, unusual):
    job = read(result_ttl=text)
    assert (job.result_ttl_s, job.unusual) == (ttl, unusual)
