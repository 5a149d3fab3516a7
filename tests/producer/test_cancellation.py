import os
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from redis import Redis
from rq.executions import Execution
from rq.job import Job as RQJob
from rq.registry import CanceledJobRegistry, StartedJobRegistry

from fixtures.finisher import finish
from tensorq import Client, Job, JobCancelled, Status, keys

X = {"x": np.zeros((1, 3), np.float32)}


def start(redis: Redis, job: Job) -> Execution:
    """Takes the only job off its queue as RQ's worker does."""
    rq_job = RQJob.fetch(job.id, connection=redis)
    redis.lpop(keys.queue("net"))
    with redis.pipeline() as pipe:
        rq_job.prepare_for_execution("w", pipeline=pipe)
        execution = Execution.create(rq_job, ttl=60, pipeline=pipe)
        pipe.execute()
    return execution


def test_a_queued_job_leaves_the_queue_and_takes_its_input_with_it(client: Client, redis: Redis) -> None:
    kept, job = client.submit("net", X), client.submit("net", X)
    assert job.cancel()
    assert job.status() is Status.CANCELLED
    assert redis.lrange(keys.queue("net"), 0, -1) == [kept.id.encode()]
    assert not redis.exists(keys.input(job.id))
    assert list(redis.hgetall(keys.inputs("net"))) == [kept.id.encode()]
    assert int(redis.get(keys.input_bytes("net")) or 0) == redis.strlen(keys.input(kept.id))
    assert CanceledJobRegistry("net", connection=redis).get_job_ids() == [job.id]


def test_the_owner_hears_of_it_at_once_whoever_cancels(client: Client, redis: Redis) -> None:
    job = client.submit("net", X)
    with Client(redis) as other:
        assert other.cancel(job.id)
    with pytest.raises(JobCancelled, match=f"job {job.id} was cancelled"):
        job.result(timeout=1)
    assert 3500 < redis.ttl(keys.done(job._owner)) <= 3600 or not redis.exists(keys.done(job._owner))


def test_a_second_cancel_is_false_and_counts_nothing_twice(client: Client, redis: Redis) -> None:
    client.submit("net", X)
    job = client.submit("net", X)
    before = int(redis.get(keys.input_bytes("net")) or 0)
    assert [job.cancel(), job.cancel()] == [True, False]
    assert int(redis.get(keys.input_bytes("net")) or 0) == before // 2


def test_an_index_entry_that_someone_removed_lowers_no_counter(client: Client, redis: Redis) -> None:
    job = client.submit("net", X)
    redis.hdel(keys.inputs("net"), job.id)
    before = redis.get(keys.input_bytes("net"))
    assert job.cancel()
    assert redis.get(keys.input_bytes("net")) == before


def test_a_job_that_ended_or_is_gone_is_not_cancelled(client: Client, redis: Redis) -> None:
    job = client.submit("net", X)
    finish(redis, "net", {job.id: X})
    assert not job.cancel()
    np.testing.assert_array_equal(job.result(timeout=1)["x"], X["x"])
    assert not client.cancel("no-such-job")


def test_a_started_job_is_cancelled_with_its_lease(client: Client, redis: Redis) -> None:
    job = client.submit("net", X)
    execution = start(redis, job)
    registry = StartedJobRegistry("net", connection=redis)
    assert job.status() is Status.RUNNING
    assert len(registry.connection.zrange(registry.key, 0, -1)) == 1
    assert job.cancel()
    assert job.status() is Status.CANCELLED
    assert redis.zrange(registry.key, 0, -1) == []
    assert execution.id


def test_a_job_that_ends_between_the_look_and_the_cancel_keeps_its_result(
    client: Client, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = client.submit("net", X)
    fetch = RQJob.fetch

    def end_first(*args: object, **kwargs: object) -> RQJob:
        finish(redis, "net", {job.id: X})
        return fetch(*args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(RQJob, "fetch", end_first)
    assert not job.cancel()
    assert job.status() is Status.FINISHED


@pytest.mark.parametrize("act", [RQJob.cancel, RQJob.delete])
def test_a_job_that_someone_else_cancels_or_deletes_at_that_moment_was_not_cancelled_here(
    client: Client, redis: Redis, monkeypatch: pytest.MonkeyPatch, act: Callable[[RQJob], object]
) -> None:
    job = client.submit("net", X)
    fetch = RQJob.fetch

    def act_first(*args: object, **kwargs: object) -> RQJob:
        fetched = fetch(*args, **kwargs)  # type: ignore[arg-type]
        monkeypatch.setattr(RQJob, "fetch", fetch)
        act(fetch(job.id, connection=redis))
        return fetched

    monkeypatch.setattr(RQJob, "fetch", act_first)
    assert not job.cancel()
    assert job.status() in (Status.CANCELLED, Status.EXPIRED)


def test_a_job_that_ends_while_rq_reads_its_executions_keeps_its_result(
    client: Client, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = client.submit("net", X)
    cancel = RQJob.cancel

    def end_first(self: RQJob, *args: object, **kwargs: object) -> None:
        if job.status() is Status.FINISHED:
            cancel(self, *args, **kwargs)  # type: ignore[arg-type]
        finish(redis, "net", {job.id: X})
        raise ValueError("Execution 1 not found in Redis")

    monkeypatch.setattr(RQJob, "cancel", end_first)
    assert not job.cancel()
    assert job.status() is Status.FINISHED


def test_a_job_whose_execution_lapsed_is_cancelled_all_the_same(client: Client, redis: Redis) -> None:
    job = client.submit("net", X)
    execution = start(redis, job)
    redis.delete(execution.key)
    assert job.cancel()
    assert job.status() is Status.CANCELLED


def test_a_deferred_job_is_cancelled(client: Client, redis: Redis) -> None:
    first = client.submit("net", X)
    second = client.submit("net", X, depends_on=first)
    assert second.cancel()
    assert second.status() is Status.CANCELLED
    assert not redis.exists(keys.input(second.id))


class Bomb:
    """Makes a folder when it is unpickled."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> tuple[object, ...]:
        return os.mkdir, (str(self.folder),)


def test_nothing_is_unpickled_on_the_way(client: Client, redis: Redis, tmp_path: Path) -> None:
    job = client.submit("net", X)
    bomb = pickle.dumps(Bomb(tmp_path / "unpickled"))
    redis.hset(keys.job(job.id), mapping={"meta": bomb, "result": bomb, "data": bomb})
    client.submit("net", X, depends_on=job)
    assert job.cancel()
    with pytest.raises(JobCancelled):
        job.result(timeout=1)
    assert not (tmp_path / "unpickled").exists()


def test_a_function_job_of_rq_is_cancelled_too(client: Client, redis: Redis) -> None:
    from rq import Queue

    job = Queue("other", connection=redis).enqueue("m.f")
    assert client.cancel(job.id)
    assert job.get_status() == "canceled"
    assert not redis.keys(f"{keys.OURS}:done:*")
