from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pytest
from redis import Redis
from rq import Callback, Queue, Retry, SimpleWorker
from rq.job import Job as RQJob
from rq.job import JobStatus
from rq.registry import FailedJobRegistry

from tensorq import Client, keys

X = {"x": np.zeros((2, 3), np.float32)}


def test_rqs_own_job_reads_every_field(client: Client, redis: Redis) -> None:
    before = datetime.now(UTC)
    job = client.submit(
        "net",
        X,
        job_id="mine-1",
        priority="high",
        timeout=77,
        ttl=60,
        result_ttl=500,
        failure_ttl=900,
        retry=Retry(max=3, interval=[5, 10], enqueue_at_front=True),
        on_success=Callback("my.ok", timeout=11),
        on_failure=Callback("my.bad", timeout=12),
        on_stopped=Callback("my.stop", timeout=13),
        description="nightly",
    )
    assert job.id == "mine-1"
    fetched = RQJob.fetch("mine-1", connection=redis)
    assert fetched.get_status() == JobStatus.QUEUED
    assert (fetched.origin, fetched.timeout, fetched.ttl) == ("net@high", 77, 60)
    assert (fetched.result_ttl, fetched.failure_ttl, fetched.description) == (500, 900, "nightly")
    assert (fetched.retries_left, fetched.retry_intervals, fetched.enqueue_at_front_on_retry) == (
        3,
        [5, 10],
        True,
    )
    assert (fetched._success_callback_name, fetched.success_callback_timeout) == ("my.ok", 11)
    assert (fetched._failure_callback_name, fetched.failure_callback_timeout) == ("my.bad", 12)
    assert (fetched._stopped_callback_name, fetched.stopped_callback_timeout) == ("my.stop", 13)
    assert fetched.func_name == "tensorq.stock.run"
    assert fetched.args == ("net",)
    for moment in (fetched.created_at, fetched.enqueued_at):
        assert moment is not None
        assert abs(moment - before) < timedelta(seconds=5)
    assert 50 < redis.ttl(keys.job("mine-1")) <= 60


def test_defaults_are_rqs(client: Client, redis: Redis) -> None:
    ours = RQJob.fetch(client.submit("net", X).id, connection=redis)
    theirs = RQJob.fetch(Queue("net", connection=redis).enqueue("m.f").id, connection=redis)
    for name in ("timeout", "ttl", "result_ttl", "failure_ttl", "retries_left", "origin", "_status", "meta"):
        assert getattr(ours, name) == getattr(theirs, name), name
    assert redis.ttl(keys.job(ours.id)) == -1


def test_our_fields_survive_rqs_save(client: Client, redis: Redis) -> None:
    job = client.submit("net", X, deadline=datetime(2030, 1, 1, tzinfo=UTC))
    before = redis.hgetall(keys.job(job.id))
    RQJob.fetch(job.id, connection=redis).save()
    after = redis.hgetall(keys.job(job.id))
    ours = {name: value for name, value in before.items() if name.startswith(b"tensorq_")}
    assert ours.items() <= after.items()
    assert ours[b"tensorq_model"] == b"net"
    assert ours[b"tensorq_rows"] == b"2"
    assert int(ours[b"tensorq_bytes"]) == len(redis.get(keys.input(job.id)) or b"")
    assert int(ours[b"tensorq_deadline_ms"]) == 1893456000000


@pytest.mark.parametrize(
    ("deadline", "deadline_ms"),
    [
        (datetime(1970, 1, 1, tzinfo=UTC), 1),  # not 0, which is no deadline
        (datetime.max.replace(tzinfo=timezone(timedelta(hours=-5))), 253402318800000),
    ],
)
def test_a_deadline_far_off_is_one_too(
    client: Client, redis: Redis, deadline: datetime, deadline_ms: int
) -> None:
    job = client.submit("net", X, deadline=deadline)
    assert int(redis.hget(keys.job(job.id), "tensorq_deadline_ms") or 0) == deadline_ms


def test_the_queue_and_its_position_are_rqs(client: Client, redis: Redis) -> None:
    jobs = client.submit_many("net", [X] * 3)
    front = client.submit("net", X, at_front=True)
    queue = Queue("net", connection=redis)
    assert queue.job_ids == [front.id, *(job.id for job in jobs)]
    assert queue in Queue.all(connection=redis)
    assert RQJob.fetch(jobs[0].id, connection=redis).get_position() == 1
    assert client.queue_length("net") == 4


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_stock_worker_fails_the_job_with_the_worker_that_it_needs(client: Client, redis: Redis) -> None:
    job = client.submit("net", X)
    SimpleWorker(["net"], connection=redis).work(burst=True, logging_level="CRITICAL")
    assert FailedJobRegistry("net", connection=redis).get_job_ids() == [job.id]
    fetched = RQJob.fetch(job.id, connection=redis)
    result = fetched.latest_result()
    assert result is not None
    assert "needs a tensorq worker: start one with `tensorq worker" in (result.exc_string or "")
