import gc
import itertools
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import pytest
from redis import Redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from fixtures.timers import Later
from tensorq import delivery, keys
from tensorq.delivery import Completions


@pytest.fixture
def completions(redis: Redis) -> Completions:
    return Completions(redis, "me")


@pytest.fixture
def no_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Statuses are looked at once, at the start: what arrives later can come from hints alone."""
    monkeypatch.setattr(delivery, "CHECK_EVERY_S", 3600.0)


def end(redis: Redis, *job_ids: str) -> None:
    """Jobs end as they do on a worker: status and hint."""
    for job_id in job_ids:
        redis.hset(keys.job(job_id), "status", "finished")
    redis.rpush(keys.done("me"), *job_ids)


def start(redis: Redis, *job_ids: str) -> None:
    for job_id in job_ids:
        redis.hset(keys.job(job_id), "status", "started")


def after(seconds: float) -> float:
    return time.monotonic() + seconds


@pytest.mark.usefixtures("no_checks")
def test_a_hint_wakes_the_wait(redis: Redis, completions: Completions, later: Later) -> None:
    start(redis, "a", "b")
    with completions.waiting(["a", "b"], polled=False) as wait:
        later(0.1, lambda: end(redis, "b"))
        began = time.monotonic()
        assert wait.next(after(10)) == {"b"}
        assert time.monotonic() - began < 0.6
        assert wait.next(after(0.05)) == set()
        assert wait.outstanding == {"a"}


@pytest.mark.usefixtures("no_checks")
def test_many_hints_come_in_one_read(redis: Redis, completions: Completions) -> None:
    ids = [f"job-{n}" for n in range(1500)]
    start(redis, *ids)
    with completions.waiting(ids, polled=False) as wait:
        wait._check()
        end(redis, *ids)
        assert len(wait.next(after(5))) == 1000
        assert len(wait.next(after(5))) == 500


@pytest.mark.usefixtures("no_checks")
def test_hints_for_nobody_are_kept_for_a_later_wait(redis: Redis, completions: Completions) -> None:
    start(redis, "a", "b", "c")
    with completions.waiting(["a"], polled=False) as wait:
        end(redis, "b", "c", "a")
        wait._check_at = after(60)
        assert wait.next(after(5)) == {"a"}
    with completions.waiting(["b"], polled=False) as wait:
        assert wait.ready == {"b"}
    # What a wait did not take is not lost either.
    with completions.waiting(["b", "c"], polled=False) as wait:
        assert wait.next(after(0)) == {"b", "c"}


def test_kept_hints_are_bounded(completions: Completions, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys, "DONE_LIMIT", 10)
    for n in range(50):
        completions._deliver({f"job-{n}"})
    assert list(completions._spare) == [f"job-{n}" for n in range(40, 50)]


def test_a_wait_does_not_go_through_all_kept_hints(completions: Completions) -> None:
    class Kept(dict[str, None]):
        def keys(self) -> Any:
            raise AssertionError("went through all that was kept")

        __iter__ = items = keys

    completions._spare = Kept.fromkeys(["a", "b"])
    with completions.waiting(["b", "c"], polled=False) as wait:
        assert wait.ready == {"b"}
        wait.ready.clear()


def test_a_client_that_never_waits_keeps_nothing(completions: Completions, redis: Redis) -> None:
    end(redis, *[f"job-{n}" for n in range(100)])
    assert not completions._spare
    assert not completions._waits


@pytest.mark.parametrize("status", ["finished", "failed", "canceled", "stopped", None])
def test_what_ended_without_a_hint_is_found_by_the_check(
    redis: Redis, completions: Completions, status: str | None, monkeypatch: pytest.MonkeyPatch, later: Later
) -> None:
    monkeypatch.setattr(delivery, "CHECK_EVERY_S", 0.3)
    start(redis, "a", "b")
    with completions.waiting(["a", "b"], polled=False) as wait:
        later(
            0.1,
            lambda: redis.hset(keys.job("a"), "status", status) if status else redis.delete(keys.job("a")),
        )
        assert wait.next(after(5)) == {"a"}


def test_jobs_that_ended_before_the_wait_are_found_at_once(redis: Redis, completions: Completions) -> None:
    start(redis, "a")
    with completions.waiting(["a", "gone"], polled=False) as wait:
        began = time.monotonic()
        assert wait.next(after(5)) == {"gone"}
        assert time.monotonic() - began < 0.2


def test_a_great_many_lost_hints_do_not_take_one_slow_check_each(
    redis: Redis, completions: Completions
) -> None:
    ids = [f"gone-{n}" for n in range(3 * delivery.CHECK_IDS)]
    began = time.monotonic()
    with completions.waiting(ids, polled=False) as wait:
        while wait.outstanding:
            assert wait.next(after(5))
    assert time.monotonic() - began < delivery.CHECK_EVERY_S


def test_each_check_is_bounded_and_all_ids_have_their_turn(redis: Redis, completions: Completions) -> None:
    ids = [f"job-{n}" for n in range(delivery.CHECK_IDS + 10)]
    start(redis, *ids)
    with completions.waiting(ids, polled=False) as wait:
        seen: set[str] = set()
        for expected in (delivery.CHECK_IDS, 10):
            before = len(wait._unchecked) or len(ids)
            wait._check()
            assert before - len(wait._unchecked) == expected
            seen.add(str(before))
        assert len(seen) == 2


def test_all_ids_have_their_turn_before_time_is_over(
    redis: Redis, completions: Completions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "CHECK_IDS", 8)
    ids = [f"job-{n}" for n in range(100)]
    start(redis, *ids[4:])
    found: set[str] = set()
    with completions.waiting(ids, polled=False) as wait:
        while ended := wait.next(after(0)):
            found |= ended
    assert found == set(ids[:4])


def test_jobs_of_others_are_polled_with_a_growing_interval(
    redis: Redis, completions: Completions, monkeypatch: pytest.MonkeyPatch, later: Later
) -> None:
    start(redis, "a")
    checks: list[float] = []
    read = delivery.status.read
    monkeypatch.setattr(
        delivery.status, "read", lambda *args: (checks.append(time.monotonic()), read(*args))[1]
    )
    with completions.waiting(["a"], polled=True) as wait:
        later(1.0, lambda: redis.hset(keys.job("a"), "status", "finished"))
        assert wait.next(after(5)) == {"a"}
    pauses = [second - first for first, second in itertools.pairwise(checks)]
    assert pauses[0] < 0.05
    assert 0.2 < max(pauses) < 0.6
    assert len(checks) < 15


@pytest.mark.usefixtures("no_checks")
def test_threads_get_their_own_hints_whoever_reads_them(redis: Redis, completions: Completions) -> None:
    ids = [f"job-{n}" for n in range(20)]
    start(redis, *ids)

    def wait_for(job_id: str) -> set[str]:
        with completions.waiting([job_id], polled=False) as wait:
            return wait.next(after(10))

    with ThreadPoolExecutor(20) as pool:
        waits = [pool.submit(wait_for, job_id) for job_id in ids]
        time.sleep(0.3)
        began = time.monotonic()
        for n in range(0, 20, 5):
            end(redis, *reversed(ids[n : n + 5]))
            time.sleep(0.02)
        assert [wait.result() for wait in waits] == [{job_id} for job_id in ids]
        assert time.monotonic() - began < 1.0


@pytest.mark.usefixtures("no_checks")
def test_two_threads_may_wait_for_one_job(redis: Redis, completions: Completions) -> None:
    start(redis, "a")

    def wait_for() -> set[str]:
        with completions.waiting(["a"], polled=False) as wait:
            return wait.next(after(10))

    with ThreadPoolExecutor(2) as pool:
        waits = [pool.submit(wait_for) for _ in range(2)]
        time.sleep(0.2)
        end(redis, "a")
        assert [wait.result() for wait in waits] == [{"a"}, {"a"}]


def test_one_thread_reads_at_a_time(
    redis: Redis, completions: Completions, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(redis, *[f"job-{n}" for n in range(8)])
    reading, most = 0, 0
    lock, read = threading.Lock(), Completions._read

    def counted(self: Completions, longest_s: float) -> list[bytes]:
        nonlocal reading, most
        with lock:
            reading += 1
            most = max(most, reading)
        try:
            return read(self, longest_s)
        finally:
            with lock:
                reading -= 1

    monkeypatch.setattr(Completions, "_read", counted)

    def wait_for(job_id: str) -> set[str]:
        with completions.waiting([job_id], polled=False) as wait:
            return wait.next(after(5))

    with ThreadPoolExecutor(8) as pool:
        waits = [pool.submit(wait_for, f"job-{n}") for n in range(8)]
        time.sleep(0.2)
        for n in range(8):
            end(redis, f"job-{n}")
            time.sleep(0.01)
        assert all(wait.result() for wait in waits)
    assert most == 1


@pytest.mark.usefixtures("no_checks")
def test_a_reader_that_fails_or_gives_up_hands_over(
    redis: Redis, completions: Completions, monkeypatch: pytest.MonkeyPatch
) -> None:
    start(redis, "a", "b")
    read, failed = Completions._read, threading.Event()

    def failing(self: Completions, longest_s: float) -> list[bytes]:
        if not failed.is_set():
            time.sleep(0.2)
            failed.set()
            raise ValueError("reader broke")
        return read(self, longest_s)

    monkeypatch.setattr(Completions, "_read", failing)

    def wait_for(job_id: str, seconds: float) -> set[str]:
        with completions.waiting([job_id], polled=False) as wait:
            return wait.next(after(seconds))

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(wait_for, "a", 10)
        time.sleep(0.05)
        second = pool.submit(wait_for, "b", 10)
        with pytest.raises(ValueError, match="reader broke"):
            first.result()
        end(redis, "b")
        began = time.monotonic()
        assert second.result() == {"b"}
        assert time.monotonic() - began < 1.0


@pytest.mark.usefixtures("no_checks")
def test_a_reader_that_leaves_for_its_callers_work_hands_over(
    redis: Redis, completions: Completions, later: Later
) -> None:
    start(redis, "a", "b", "c")
    with ExitStack() as stack, ThreadPoolExecutor(1) as pool:
        for _ in range(20):  # waits whose callers are busy, too: they cannot take over
            stack.enter_context(completions.waiting(["c"], polled=False))
        busy = stack.enter_context(completions.waiting(["a", "c"], polled=False))
        follower: list[Future[set[str]]] = []
        later(0.2, lambda: follower.append(pool.submit(_next, completions, "b")))
        later(0.4, lambda: end(redis, "a"))
        assert busy.next(after(5)) == {"a"}
        began = time.monotonic()
        end(redis, "b")
        assert follower[0].result() == {"b"}
        assert time.monotonic() - began < 1.0


def test_the_list_is_handed_to_one_that_stays(
    completions: Completions, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ExitStack() as stack:
        leaving = [stack.enter_context(completions.waiting(["a"], polled=False)) for _ in range(20)]
        staying = stack.enter_context(completions.waiting(["b"], polled=False))
        told: list[delivery.Wait] = []
        for wait in (*leaving, staying):
            wait.blocked = True
            monkeypatch.setattr(wait.woken, "notify", lambda wait=wait: told.append(wait))
        with completions.lock:
            completions._deliver({"a"})
            told.clear()
            completions._hand_over()
        assert told == [staying]
        monkeypatch.undo()
        for wait in (*leaving, staying):
            wait.blocked = False


def _next(completions: Completions, job_id: str) -> set[str]:
    with completions.waiting([job_id], polled=False) as wait:
        return wait.next(after(10))


def test_a_job_that_was_handed_out_and_runs_again_is_waited_for_on(
    redis: Redis, completions: Completions, later: Later
) -> None:
    start(redis, "a")
    with completions.waiting(["a"], polled=False) as wait:
        redis.rpush(keys.done("me"), "a")
        wait._check_at = after(60)
        assert wait.next(after(5)) == {"a"}
        wait.resume({"a"})
        later(0.1, lambda: end(redis, "a"))
        assert wait.next(after(5)) == {"a"}


def test_an_abandoned_wait_may_end_while_its_thread_is_in_here(
    redis: Redis, completions: Completions
) -> None:
    start(redis, "a")
    entered = completions.waiting(["a"], polled=False)
    entered.__enter__()
    circle: list[object] = [entered]
    circle.append(circle)

    def collect() -> None:
        with completions.lock:
            gc.collect()

    del entered, circle
    thread = threading.Thread(target=collect, daemon=True)
    thread.start()
    thread.join(10)
    assert not thread.is_alive()
    assert not completions._waits


def test_time_is_over_when_it_is(redis: Redis, completions: Completions) -> None:
    start(redis, "a")
    with completions.waiting(["a"], polled=False) as wait:
        for seconds in (0.0, 0.02, 0.3):
            began = time.monotonic()
            assert wait.next(after(seconds)) == set()
            assert seconds <= time.monotonic() - began < seconds + 0.25


@pytest.fixture
def short_timeout(redis: Redis, request: pytest.FixtureRequest) -> Iterator[Redis]:
    path = redis.connection_pool.connection_kwargs["path"]
    with Redis(unix_socket_path=path, socket_timeout=request.param, retry=Retry(NoBackoff(), 0)) as client:
        yield client


@pytest.mark.parametrize("short_timeout", [0.02, 0.2, 0.3, 0.5], indirect=True)
@pytest.mark.usefixtures("no_checks")
def test_a_socket_timeout_shorter_than_the_wait_does_not_break_it(
    redis: Redis, short_timeout: Redis, later: Later
) -> None:
    start(redis, "a")
    completions = Completions(short_timeout, "me")
    with completions.waiting(["a"], polled=False) as wait:
        later(0.7, lambda: end(redis, "a"))
        assert wait.next(after(5)) == {"a"}
