import logging
import threading
import time

import pytest
from redis.exceptions import ConnectionError as RedisConnectionError

from tensorq_worker.pulse import Pulse, Task


@pytest.fixture
def beating():
    started = []

    def start(*tasks):
        pulse = Pulse(list(tasks))
        pulse.start()
        started.append(pulse)
        return pulse

    yield start
    for pulse in started:
        pulse.close()


class Act:
    """Counts its runs; the first ``failures`` raise ``error``."""

    def __init__(self, failures=0, error=None):
        self.times = []
        self._failures, self._error = failures, error
        self._ran = threading.Condition()

    def __call__(self):
        with self._ran:
            self.times.append(time.monotonic())
            self._ran.notify_all()
        if len(self.times) <= self._failures:
            raise self._error

    def wait_for(self, count):
        with self._ran:
            assert self._ran.wait_for(lambda: len(self.times) >= count, timeout=5)


def test_a_task_runs_at_once_and_then_in_its_time(beating):
    act = Act()
    beating(Task("t", 0.05, act))
    act.wait_for(4)
    assert act.times[3] - act.times[0] >= 0.14


def test_tasks_do_not_wait_for_one_anothers_time(beating):
    seldom, often = Act(), Act()
    beating(Task("seldom", 60, seldom), Task("often", 0.01, often))
    often.wait_for(5)
    assert len(seldom.times) == 1


def test_what_redis_interrupts_is_tried_again_after_a_second(beating, caplog):
    act = Act(1, RedisConnectionError("gone"))
    with caplog.at_level(logging.ERROR, "rq.worker"):
        beating(Task("beat", 60, act))
        act.wait_for(2)
    assert act.times[1] - act.times[0] == pytest.approx(1.0, abs=0.5)
    assert "beat: Redis: gone" in caplog.text


def test_a_task_that_breaks_stops_neither_itself_nor_the_others(beating, caplog):
    broken, other = Act(2, ZeroDivisionError()), Act()
    with caplog.at_level(logging.ERROR, "rq.worker"):
        beating(Task("broken", 0.01, broken), Task("other", 0.01, other))
        broken.wait_for(4)
        other.wait_for(4)
    assert "broken failed" in caplog.text


def test_nothing_runs_after_close(beating):
    act = Act()
    pulse = beating(Task("t", 0.01, act))
    act.wait_for(2)
    pulse.close()
    count = len(act.times)
    time.sleep(0.05)
    assert len(act.times) == count


def test_close_without_start_returns():
    Pulse([]).close()
