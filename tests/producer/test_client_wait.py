import gc
import multiprocessing
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from redis import Redis
from rq.job import Job as RQJob

from fixtures.finisher import FakeWorker, fail, finish
from fixtures.timers import Later
from tensorq import (
    Client,
    InputError,
    Job,
    JobCancelled,
    JobExpired,
    JobFailed,
    ResultTimeout,
    Status,
    WireError,
    delivery,
    keys,
    wire,
)

F32 = np.float32
TRACEBACK = 'Traceback:\n  File "w.py", line 1, in f\n    g()\nengine.ShapeError: no such shape\n'


def x(value: float, rows: int = 1) -> dict[str, np.ndarray]:
    return {"x": np.full((rows, 3), value, F32)}


def double(inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {"y": inputs["x"] * 2}


def test_a_result_comes_back(client: Client, redis: Redis) -> None:
    with FakeWorker(redis, "net", double):
        job = client.submit("net", x(4))
        outputs = job.result(timeout=10)
        assert outputs["y"].tolist() == [[8, 8, 8]]
        assert not outputs["y"].flags.writeable
        assert job.status() is Status.FINISHED
        # Again, from the id alone, and by another client.
        with Client(redis) as other:
            for result in (job.result(0), client.result(job.id, 0), other.result(job.id, 0)):
                assert result["y"].tolist() == [[8, 8, 8]]


def test_gather_is_in_order_and_may_be_repeated(client: Client, redis: Redis) -> None:
    jobs = client.submit_many("net", [x(n) for n in range(500)])
    with FakeWorker(redis, "net", double):
        order = [*reversed(jobs), jobs[3], jobs[3].id]
        for _ in range(2):
            values = [outputs["y"][0, 0] for outputs in client.gather(order, timeout=20)]
            assert values == [*(2.0 * n for n in reversed(range(500))), 6, 6]
    assert client.gather([]) == []


def test_as_completed_yields_each_job_once_in_whichever_way_it_ended(
    client: Client, redis: Redis, later: Later
) -> None:
    jobs = client.submit_many("net", [x(n) for n in range(6)])
    done, failed, cancelled, deleted, expired, late = jobs
    finish(redis, "net", {done.id: x(0)})
    fail(redis, "net", [failed.id], TRACEBACK)
    cancelled.cancel()
    RQJob.fetch(deleted.id, connection=redis).delete()
    redis.expire(keys.job(expired.id), 0)
    later(0.3, lambda: finish(redis, "net", {late.id: x(5)}))
    seen = list(client.as_completed([*jobs, done], timeout=10))
    assert sorted(job.id for job in seen) == sorted(job.id for job in jobs)
    assert seen[-1] is late
    assert client.statuses(jobs) == [
        *(Status.FINISHED, Status.FAILED, Status.CANCELLED),
        *(Status.EXPIRED, Status.EXPIRED, Status.FINISHED),
    ]
    for job, error in (
        (failed, JobFailed),
        (cancelled, JobCancelled),
        (deleted, JobExpired),
        (expired, JobExpired),
    ):
        with pytest.raises(error):
            job.result(timeout=0)


def test_a_job_as_it_is_yielded_has_its_result_at_hand(client: Client, redis: Redis) -> None:
    jobs = client.submit_many("net", [x(n) for n in range(100)])
    finish(redis, "net", {job.id: x(n) for n, job in enumerate(jobs)})
    fail(redis, "net", [jobs[50].id], TRACEBACK)
    redis.delete(keys.result(jobs[50].id))
    held = set()
    for job in client.as_completed(jobs, timeout=10):
        assert job._outcome is not None
        held.add(job.id)
        redis.delete(keys.result(job.id))
        if job is jobs[50]:
            with pytest.raises(JobFailed):
                job.result(timeout=0)
        elif len(held) % 2:
            assert job.result(timeout=0)["x"].shape == (1, 3)
    assert len(held) == 100
    assert all(job._outcome is None for job in jobs)


def test_as_completed_yields_as_jobs_complete(client: Client, redis: Redis, later: Later) -> None:
    jobs = client.submit_many("net", [x(n) for n in range(3)])
    for n in (2, 0, 1):
        later(0.1 + 0.2 * (2, 0, 1).index(n), lambda n=n: finish(redis, "net", {jobs[n].id: x(n)}))
    assert [jobs.index(job) for job in client.as_completed(jobs, timeout=10)] == [2, 0, 1]


def test_a_failure_names_kind_message_and_the_whole_text(client: Client, redis: Redis, later: Later) -> None:
    job = client.submit("net", x(1))
    later(0.1, lambda: fail(redis, "net", [job.id], TRACEBACK))
    with pytest.raises(JobFailed, match=f"job {job.id} failed: ShapeError: no such shape") as caught:
        job.result(timeout=10)
    assert (caught.value.kind, caught.value.job_id) == ("ShapeError", job.id)
    assert caught.value.detail == TRACEBACK


def test_gather_raises_the_first_error_or_puts_errors_in_their_places(client: Client, redis: Redis) -> None:
    jobs = client.submit_many("net", [x(n) for n in range(4)])
    finish(redis, "net", {jobs[0].id: x(0), jobs[3].id: b"\x00 tampered"})
    fail(redis, "net", [jobs[1].id], TRACEBACK)
    with pytest.raises(JobFailed):
        client.gather(jobs[:2], timeout=5)
    with pytest.raises(WireError):
        client.gather(jobs[3:], timeout=5)
    began = time.monotonic()
    got = client.gather(jobs, timeout=0.3, return_errors=True)
    assert time.monotonic() - began < 1
    assert isinstance(got[0], dict)
    assert [type(one) for one in got[1:]] == [JobFailed, ResultTimeout, WireError]


def test_a_timeout_says_which_job_and_leaves_it_as_it_is(client: Client, redis: Redis, later: Later) -> None:
    jobs = client.submit_many("net", [x(1), x(2)])
    for wait in (lambda: jobs[0].result(timeout=0.1), lambda: client.gather(jobs, timeout=0.1)):
        with pytest.raises(ResultTimeout, match=f"job {jobs[0].id}.* has not ended within 0.1 s") as caught:
            wait()
        assert isinstance(caught.value, TimeoutError)
    later(0.05, lambda: finish(redis, "net", {jobs[0].id: x(1)}))
    completed = client.as_completed(jobs, timeout=0.4)
    assert next(completed) is jobs[0]
    with pytest.raises(ResultTimeout, match=r"\(1 of 2 jobs\)"):
        next(completed)
    assert jobs[1].status() is Status.PENDING
    finish(redis, "net", {jobs[1].id: x(2)})
    assert jobs[1].result(timeout=0)["x"].shape == (1, 3)


LOST = {
    "lost hint": (lambda redis, job: redis.hset(keys.job(job.id), "status", "finished"), JobExpired),
    "rq delete": (lambda redis, job: RQJob.fetch(job.id, connection=redis).delete(), JobExpired),
    "rq cancel": (lambda redis, job: RQJob.fetch(job.id, connection=redis).cancel(), JobCancelled),
    "expired": (lambda redis, job: redis.pexpire(keys.job(job.id), 1), JobExpired),
    "stock failure": (lambda redis, job: redis.hset(keys.job(job.id), "status", "failed"), JobFailed),
    "queue emptied": (lambda redis, job: redis.delete(keys.job(job.id)), JobExpired),
}


@pytest.mark.parametrize("case", LOST)
def test_what_pushes_no_hint_does_not_hang_a_waiter(
    client: Client, redis: Redis, case: str, monkeypatch: pytest.MonkeyPatch, later: Later
) -> None:
    monkeypatch.setattr(delivery, "CHECK_EVERY_S", 0.3)
    action, error = LOST[case]
    job, other = client.submit_many("net", [x(1)] * 2)
    later(0.1, lambda: action(redis, job))
    with pytest.raises(error):
        job.result(timeout=5)
    action(redis, other)
    assert [type(one) for one in client.gather([job, other], timeout=5, return_errors=True)] == [error, error]


def test_a_result_whose_hint_is_lost_is_found(
    client: Client, redis: Redis, monkeypatch: pytest.MonkeyPatch, later: Later
) -> None:
    monkeypatch.setattr(delivery, "CHECK_EVERY_S", 0.3)
    job = client.submit("net", x(1))
    redis.hdel(keys.job(job.id), "tensorq_client")
    later(0.1, lambda: finish(redis, "net", {job.id: x(9)}))
    assert job.result(timeout=5)["x"][0, 0] == 9


def test_a_job_of_another_client_is_polled_for(client: Client, redis: Redis, later: Later) -> None:
    job = client.submit("net", x(1))
    with Client(redis) as other:
        later(0.3, lambda: finish(redis, "net", {job.id: x(1)}))
        assert other.result(job.id, timeout=5)["x"].shape == (1, 3)
        assert [one.id for one in other.as_completed([job.id], timeout=5)] == [job.id]
        assert other.gather([job], timeout=5)


def test_a_finished_job_without_a_result_is_expired(client: Client, redis: Redis) -> None:
    job = client.submit("net", x(1))
    finish(redis, "net", {job.id: x(1)})
    redis.delete(keys.result(job.id))
    with pytest.raises(
        JobExpired, match="finished, but its result is gone; read it sooner or raise result_ttl"
    ):
        job.result(timeout=5)


def test_a_hint_that_comes_too_early_is_waited_over(client: Client, redis: Redis, later: Later) -> None:
    job = client.submit("net", x(1))
    redis.rpush(keys.done(job._owner), job.id)
    later(0.3, lambda: finish(redis, "net", {job.id: x(1)}))
    assert job.result(timeout=5)["x"].shape == (1, 3)


def test_threads_share_a_client(client: Client, redis: Redis) -> None:
    def one(n: int) -> float:
        return float(client.submit("net", x(n)).result(timeout=20)["y"][0, 0])

    with FakeWorker(redis, "net", double), ThreadPoolExecutor(16) as pool:
        assert list(pool.map(one, range(200))) == [2.0 * n for n in range(200)]


def test_a_wait_costs_no_poll_a_job(client: Client, redis: Redis, later: Later) -> None:
    jobs = client.submit_many("net", [x(n) for n in range(200)])
    later(1.0, lambda: finish(redis, "net", {job.id: x(0) for job in jobs}))
    before = calls_of(redis)
    client.gather(jobs, timeout=10)
    after = calls_of(redis)
    spent = {name: after[name] - before.get(name, 0) for name in ("hget", "mget", "lpop", "blpop")}
    # One status a job at the start, and the three reads a job that the finisher's script does.
    assert spent["hget"] == 200 + 3 * 200
    # Blocks of a second, reads of hints, and results 64 at a time, twice over: at first there are none.
    assert spent["mget"] + spent["lpop"] + spent["blpop"] < 60


def calls_of(redis: Redis) -> dict[str, int]:
    stats = redis.info("commandstats")
    return {name.removeprefix("cmdstat_"): stat["calls"] for name, stat in stats.items()}


def test_gather_holds_the_results_and_little_else(client: Client, redis: Redis) -> None:
    big = {"x": np.zeros((1, 3), F32), "pad": np.zeros(250_000, F32)}
    jobs = client.submit_many("net", [x(n) for n in range(40)])
    for job in jobs:
        finish(redis, "net", {job.id: big})
    tracemalloc.start()
    results = client.gather(jobs, timeout=10)
    size, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(results) == 40
    assert peak < size + 20_000_000
    assert size < 45_000_000


def test_a_client_that_never_waits_does_not_grow(client: Client, redis: Redis) -> None:
    with FakeWorker(redis, "net"):
        jobs = client.submit_many("net", [x(n) for n in range(300)])
        while client.queue_length("net"):
            time.sleep(0.01)
    assert not client._collector._current()._spare
    assert redis.ttl(keys.done(jobs[0]._owner)) > 0


def test_an_abandoned_iteration_leaves_no_wait_behind(client: Client, redis: Redis) -> None:
    jobs = client.submit_many("net", [x(n) for n in range(3)])
    finish(redis, "net", {jobs[0].id: x(0)})
    for _ in client.as_completed(jobs, timeout=10):
        break
    gc.collect()
    assert not client._collector._current()._waits


def _in_child(client: Client, queue: "multiprocessing.Queue[object]") -> None:
    job = client.submit("net", x(5))
    queue.put((job._owner, job.result(timeout=20)["y"][0, 0]))


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_child_has_a_list_of_its_own(client: Client, redis: Redis) -> None:
    context = multiprocessing.get_context("fork")
    queue: multiprocessing.Queue[object] = context.Queue()
    job = client.submit("net", x(1))
    with client._collector._current().lock:  # as if another thread waited at that moment
        child = context.Process(target=_in_child, args=(client, queue), daemon=True)
        child.start()
    with FakeWorker(redis, "net", double):
        owner, value = queue.get(timeout=20)  # type: ignore[misc]
        assert (owner != job._owner, value) == (True, 10)
        assert job.result(timeout=20)["y"][0, 0] == 2
    child.join()


@pytest.mark.parametrize("job", [None, 7, b"id", ""], ids=repr)
def test_what_is_not_a_job_is_refused(client: Client, job: object) -> None:
    for call in (client.result, client.status, client.cancel):
        with pytest.raises(InputError, match="expected a Job or a job id"):
            call(job)  # type: ignore[operator]


def test_handles_are_equal_by_id_and_small(client: Client) -> None:
    one, same = Job(client, "a", "net"), Job(client, "a")
    assert one == same
    assert len({one, same, Job(client, "b")}) == 2
    assert one != "a"
    assert repr(one) == "Job('a', model='net')"
    assert not hasattr(one, "__dict__")


def test_results_of_every_dtype_come_back(client: Client, redis: Redis) -> None:
    outputs = {name: np.ones((1, 2), name) for name in wire.DTYPES}
    job = client.submit("net", x(1))
    finish(redis, "net", {job.id: outputs})
    got = job.result(timeout=5)
    assert {name: array.dtype for name, array in got.items()} == {n: a.dtype for n, a in outputs.items()}
