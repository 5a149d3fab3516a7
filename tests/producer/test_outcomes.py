from base64 import b64encode
from zlib import compress

import pytest
from redis import Redis

from tensorq import JobCancelled, JobExpired, JobFailed, keys
from tensorq.outcomes import TRIP_BYTES, TRIP_JOBS, Outcomes


def put(redis: Redis, job_id: str, status: str, result: bytes | None = None) -> None:
    redis.hset(keys.job(job_id), "status", status)
    if result is not None:
        redis.set(keys.result(job_id), result)


@pytest.mark.parametrize("protocol", [2, 3])
def test_each_end_has_its_outcome_and_what_has_not_ended_has_none(redis: Redis, protocol: int) -> None:
    put(redis, "done", "finished", b"packed")
    put(redis, "gone", "finished")
    put(redis, "failed", "failed")
    put(redis, "silent", "failed")
    text = b64encode(compress(b"  File x\n    y\nm.WireError: bad\n"))
    for entry in (b"old", text):
        redis.xadd(keys.results("failed"), {"type": 2, "exc_string": entry})
    for status in ("canceled", "stopped", "queued", "started", "deferred"):
        put(redis, status, status)
    ids = ["done", "gone", "failed", "silent", "canceled", "stopped", "queued", "started", "deferred", "none"]
    path = redis.connection_pool.connection_kwargs["path"]
    with Redis(unix_socket_path=path, protocol=protocol) as connection:
        outcomes = Outcomes(connection).ended(ids)
    assert outcomes["done"] == b"packed"
    kinds = {job_id: type(outcome) for job_id, outcome in outcomes.items() if job_id != "done"}
    assert kinds == {
        "gone": JobExpired,
        "failed": JobFailed,
        "silent": JobFailed,
        "canceled": JobCancelled,
        "stopped": JobCancelled,
        "none": JobExpired,
    }
    failed = outcomes["failed"]
    assert isinstance(failed, JobFailed)
    assert (failed.kind, failed.job_id) == ("WireError", "failed")
    assert "job failed failed: WireError: bad" in str(failed)


def test_a_job_that_finishes_between_two_reads_is_not_taken_for_expired(redis: Redis) -> None:
    class Racing(Outcomes):
        def results(self, job_ids):  # type: ignore[no-untyped-def]
            found = super().results(job_ids)
            put(redis, "a", "finished", b"packed")
            return found

    assert Racing(redis).ended(["a"]) == {"a": b"packed"}


def test_round_trips_are_bounded_by_count_and_follow_the_results_sizes(redis: Redis) -> None:
    outcomes = Outcomes(redis)
    assert [len(trip) for trip in outcomes.trips(map(str, range(16)))] == [7, 7, 2]
    put(redis, "small", "finished", bytes(100))
    outcomes.results(["small"])
    assert [len(trip) for trip in outcomes.trips(map(str, range(100)))] == [TRIP_JOBS, 100 - TRIP_JOBS]
    outcomes._typical_bytes = TRIP_BYTES // 4
    assert [len(trip) for trip in outcomes.trips(map(str, range(7)))] == [3, 3, 1]
    outcomes._typical_bytes = 2 * TRIP_BYTES
    assert [len(trip) for trip in outcomes.trips(map(str, range(3)))] == [1, 1, 1]


def test_sizes_seen_on_the_way_change_the_next_trip(redis: Redis) -> None:
    for n in range(40):
        put(redis, str(n), "finished", bytes(10))
    outcomes, sizes = Outcomes(redis), []
    for trip in outcomes.trips(map(str, range(40))):
        sizes.append(len(trip))
        assert len(outcomes.results(trip)) == len(trip)
    assert sizes == [7, 33]


def test_no_jobs_have_no_outcomes(redis: Redis) -> None:
    assert list(Outcomes(redis).trips([])) == []
