import logging
import threading

import pytest
from redis.exceptions import ConnectionError, ReadOnlyError, ResponseError

from tensorq_worker.loop.backoff import Backoff, wrong_type


class Event(threading.Event):
    """Notes the pauses instead of taking them."""

    def __init__(self):
        super().__init__()
        self.pauses = []

    def wait(self, timeout=None):
        self.pauses.append(timeout)
        return self.is_set()


def waits(backoff, event, count):
    return [backoff.wait(event, ConnectionError("gone"), "working") for _ in range(count)]


def test_pauses_double_up_to_the_longest():
    event = Event()
    assert waits(Backoff(longest_s=1.0), event, 6) == [True] * 6
    assert event.pauses == [0.1, 0.2, 0.4, 0.8, 1.0, 1.0]


def test_a_success_starts_over():
    event, backoff = Event(), Backoff()
    waits(backoff, event, 3)
    backoff.reset()
    waits(backoff, event, 1)
    assert event.pauses[-1] == 0.1


def test_a_stop_ends_the_pause():
    event = Event()
    event.set()
    assert waits(Backoff(), event, 1) == [False]


def test_says_what_failed_and_when_it_is_tried_again(caplog):
    with caplog.at_level(logging.ERROR, "rq.worker"):
        waits(Backoff(), Event(), 1)
    assert "working: Redis: gone; trying again in 0.1 s" in caplog.text


@pytest.mark.parametrize(
    ("error", "wrong"),
    [
        (ResponseError("WRONGTYPE Operation against a key holding the wrong kind of value"), True),
        (ResponseError("BUSY Redis is busy running a script"), False),
        (ResponseError("MISCONF Redis is configured to save RDB snapshots"), False),
        (ReadOnlyError("You can't write against a read only replica."), False),
        (ConnectionError("closed"), False),
    ],
    ids=["WRONGTYPE", "BUSY", "MISCONF", "READONLY", "connection"],
)
def test_only_a_key_of_another_type_is_not_waited_out(error, wrong):
    assert wrong_type(error) is wrong
