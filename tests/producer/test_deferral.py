import numpy as np
import pytest
from redis import Redis
from rq import Queue
from rq.job import Job as RQJob
from rq.job import JobStatus
from rq.registry import DeferredJobRegistry
from rq.serializers import JSONSerializer

from fixtures.finisher import FakeWorker, finish
from tensorq import Client, Job, Limits, QueueFull, Status, keys

X = {"x": np.zeros((1, 3), np.float32)}


def release(redis: Redis, job: Job) -> None:
    """What RQ does when a job has finished."""
    Queue("net", connection=redis).enqueue_dependents(RQJob.fetch(job.id, connection=redis))


def test_a_dependent_job_is_an_ordinary_deferred_one(client: Client, redis: Redis) -> None:
    first = client.submit("net", X)
    second = client.submit(
        "net", X, depends_on=first, timeout=77, retry=2, description="after", priority="low"
    )
    fetched = RQJob.fetch(second.id, connection=redis)
    assert fetched.get_status() == JobStatus.DEFERRED
    assert second.status() is Status.PENDING
    assert fetched.dependency_ids == [f"{keys.JOB}{first.id}".encode()] or fetched._dependency_ids == [
        first.id
    ]
    assert (fetched.origin, fetched.timeout, fetched.retries_left) == ("net@low", 77, 2)
    assert (fetched.description, fetched.func_name) == ("after", "tensorq.stock.run")
    assert DeferredJobRegistry("net@low", connection=redis).get_job_ids() == [second.id]
    assert RQJob.fetch(first.id, connection=redis).dependent_ids == [second.id]
    assert redis.hget(keys.job(second.id), "tensorq_model") == b"net"
    assert client.queue_length("net") == 1


def test_it_runs_when_rq_releases_it(client: Client, redis: Redis) -> None:
    first = client.submit("net", X)
    second = client.submit("net", {"x": np.ones((1, 3), np.float32)}, depends_on=[first.id])
    finish(redis, "net", {first.id: X})
    release(redis, first)
    assert redis.lrange(keys.queue("net"), 0, -1) == [second.id.encode()]
    assert redis.hget(keys.job(second.id), "tensorq_client") == second._owner.encode()
    assert redis.hget(keys.job(second.id), "tensorq_rows") == b"1"
    with FakeWorker(redis, "net"):
        assert second.result(timeout=5)["x"].sum() == 3


def test_its_input_is_stored_and_counted_as_any(client: Client, redis: Redis) -> None:
    first = client.submit("net", X)
    second = client.submit("net", X, depends_on=first)
    size = redis.strlen(keys.input(second.id))
    assert redis.hget(keys.inputs("net"), second.id) == str(size).encode()
    assert int(redis.get(keys.input_bytes("net")) or 0) == 2 * size
    assert redis.ttl(keys.input(second.id)) == -1


def test_its_input_outlives_the_ttl_that_rq_starts_anew_at_the_release(client: Client, redis: Redis) -> None:
    first = client.submit("net", X)
    second = client.submit("net", X, depends_on=first, ttl=1000)
    assert redis.ttl(keys.job(second.id)) <= 1000
    redis.expire(keys.job(second.id), 1)
    finish(redis, "net", {first.id: X})
    release(redis, first)
    assert 990 < redis.ttl(keys.job(second.id)) <= 1000
    assert redis.ttl(keys.input(second.id)) > 2000


def test_dependencies_that_have_finished_put_it_on_the_queue_at_once(client: Client, redis: Redis) -> None:
    first = client.submit("net", X)
    finish(redis, "net", {first.id: X})
    redis.delete(keys.WAKE)
    second = client.submit("net", X, depends_on=first)
    assert RQJob.fetch(second.id, connection=redis).get_status() == JobStatus.QUEUED
    assert redis.lrange(keys.queue("net"), 0, -1) == [second.id.encode()]
    assert redis.xlen(keys.WAKE) == 1


def test_at_front_holds_for_the_release(client: Client, redis: Redis) -> None:
    first = client.submit("net", X)
    second = client.submit("net", X, depends_on=first, at_front=True)
    finish(redis, "net", {first.id: X})
    other = client.submit("net", X)
    release(redis, first)
    assert redis.lrange(keys.queue("net"), 0, -1) == [second.id.encode(), other.id.encode()]


def test_a_known_id_is_stored_once(client: Client, redis: Redis) -> None:
    first = client.submit("net", X)
    for _ in range(2):
        assert client.submit("net", X, depends_on=first, job_id="mine").id == "mine"
    assert redis.hlen(keys.inputs("net")) == 2
    assert sum(map(int, redis.hvals(keys.inputs("net")))) == int(redis.get(keys.input_bytes("net")) or 0)


def test_many_may_depend_on_many(client: Client, redis: Redis) -> None:
    firsts = client.submit_many("net", [X] * 2)
    seconds = client.submit_many("net", [X] * 3, depends_on=firsts)
    finish(redis, "net", {firsts[0].id: X})
    release(redis, firsts[0])
    assert client.queue_length("net") == 1
    finish(redis, "net", {firsts[1].id: X})
    release(redis, firsts[1])
    assert client.queue_length("net") == 3
    assert {job.status() for job in seconds} == {Status.PENDING}


@pytest.mark.parametrize("limits", [Limits(max_jobs=1), Limits(max_bytes=1)], ids=["jobs", "bytes"])
def test_a_full_queue_refuses_it_and_keeps_nothing(redis: Redis, limits: Limits) -> None:
    with Client(redis) as free:
        first = free.submit("net", X)
    before = sorted(redis.keys())
    with Client(redis, limits=limits) as client, pytest.raises(QueueFull, match="1 of 1 jobs refused"):
        client.submit("net", X, depends_on=first)
    assert sorted(redis.keys()) == before


def test_a_dependency_that_ends_while_it_is_stored_does_not_leave_it_waiting(
    client: Client, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = client.submit("net", X)
    register, ended = RQJob.register_dependency, []

    def end_first(job: RQJob, **kwargs: object) -> None:
        if not ended:
            ended.append(True)
            finish(redis, "net", {first.id: X})
        register(job, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(RQJob, "register_dependency", end_first)
    second = client.submit("net", X, depends_on=first)
    assert ended
    assert (
        RQJob.fetch(second.id, connection=redis, serializer=JSONSerializer).get_status() == JobStatus.QUEUED
    )
    assert redis.lrange(keys.queue("net"), 0, -1) == [second.id.encode()]


def test_an_id_that_is_free_again_takes_over_nothing_of_the_job_before(client: Client, redis: Redis) -> None:
    first = client.submit("net", X)
    client.submit("net", X, depends_on=first, job_id="mine")
    redis.set(keys.result("mine"), "of the job before")
    redis.delete(keys.job("mine"))
    client.submit("net", {"x": np.zeros((2, 3), np.float32)}, depends_on=first, job_id="mine")
    assert int(redis.get(keys.input_bytes("net")) or 0) == sum(map(int, redis.hvals(keys.inputs("net"))))
    assert not redis.exists(keys.result("mine"))
