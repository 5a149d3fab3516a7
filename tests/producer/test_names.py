import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorq import Priority, UnknownModel
from tensorq.names import model_queues, parse_queue, queue_name, validate_model_name


@pytest.mark.parametrize("name", ["a", "ocr-rec", "7b", "Net_v1.2", "x" * 128])
def test_model_names_pass(name: str) -> None:
    assert validate_model_name(name) == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".hidden",
        "-x",
        "_x",
        "a@high",
        "a/b",
        "../a",
        "a:b",
        "a b",
        "a\n",
        "a\x00",
        "é",
        "x" * 129,
        7,
        None,
        b"a",
    ],
)
def test_other_names_are_refused_and_told_what_a_name_is(name: str) -> None:
    with pytest.raises(UnknownModel, match="is not a model name: expected 1 to 128 of letters"):
        validate_model_name(name)


@given(st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._-]{0,20}", fullmatch=True), st.sampled_from(Priority))
def test_a_queue_is_told_apart_into_model_and_priority(model: str, priority: Priority) -> None:
    assert parse_queue(queue_name(model, priority)) == (model, priority)


def test_queues_are_listed_by_priority() -> None:
    assert model_queues("net") == ("net@high", "net", "net@low")
    assert [queue_name("net", p) for p in (Priority.HIGH, "normal", Priority.LOW)] == list(
        model_queues("net")
    )


@pytest.mark.parametrize("queue", ["net@", "net@normal", "net@urgent", "@high", "net@high@low", "a/b@high"])
def test_queues_that_are_not_ours_are_refused(queue: str) -> None:
    with pytest.raises(UnknownModel):
        parse_queue(queue)
