import pytest
from redis import Redis

from tensorq import ConfigError, Limits, Priority, QueueFull, WireError, keys
from tensorq.jobhash import JobOptions
from tensorq.submission import (
    CHUNK_JOBS,
    FULL,
    INLINE_BYTES,
    KNOWN,
    STORED,
    SUBMIT,
    Request,
    new_job_id,
    refuse_full,
    submit,
    submit_own,
)

SMALL, LARGE = b"s" * 100, b"L" * (INLINE_BYTES + 1)


def requests(*payloads: bytes) -> list[Request]:
    return [Request(f"job-{n}", 1, payload) for n, payload in enumerate(payloads)]


def store(
    redis: Redis, batch: list[Request], limits: Limits | None = None, options: JobOptions | None = None
) -> list[int]:
    return submit(redis, "net", batch, "me", options or JobOptions(), limits or Limits())


def counted(redis: Redis) -> int:
    return int(redis.get(keys.input_bytes("net")) or 0)


def indexed(redis: Redis) -> dict[bytes, bytes]:
    return redis.hgetall(keys.inputs("net"))  # type: ignore[return-value]


def test_jobs_are_stored_in_order_with_payload_index_counter_and_queue(redis: Redis) -> None:
    assert store(redis, requests(SMALL, SMALL + b"2")) == [STORED, STORED]
    assert redis.lrange(keys.queue("net"), 0, -1) == [b"job-0", b"job-1"]
    assert redis.smembers(keys.QUEUES) == {b"rq:queue:net"}
    assert redis.get(keys.input("job-1")) == SMALL + b"2"
    assert indexed(redis) == {b"job-0": b"100", b"job-1": b"101"}
    assert counted(redis) == 201
    assert redis.hget(keys.job("job-0"), "status") == b"queued"


@pytest.mark.parametrize("payload", [SMALL, LARGE], ids=["small", "large"])
def test_a_payload_lives_as_long_as_its_job_may_wait(redis: Redis, payload: bytes) -> None:
    store(redis, requests(payload))
    assert redis.ttl(keys.input("job-0")) == -1
    submit(redis, "net", [Request("other", 1, payload)], "me", JobOptions(ttl_s=60), Limits())
    assert 600 < redis.ttl(keys.input("other")) <= 660
    assert 50 < redis.ttl(keys.job("other")) <= 60


@pytest.mark.parametrize("payload", [SMALL, LARGE], ids=["small", "large"])
def test_a_repeated_call_changes_nothing(redis: Redis, payload: bytes) -> None:
    assert store(redis, requests(payload, payload)) == [STORED, STORED]
    redis.hset(keys.job("job-0"), "status", "started")
    redis.lpop(keys.queue("net"))
    assert store(redis, requests(payload, payload)) == [KNOWN, KNOWN]
    assert redis.lrange(keys.queue("net"), 0, -1) == [b"job-1"]
    assert counted(redis) == 2 * len(payload)
    assert redis.hget(keys.job("job-0"), "status") == b"started"
    assert redis.ttl(keys.input("job-0")) == -1


def test_a_repeated_call_for_an_ended_job_leaves_no_input(redis: Redis) -> None:
    store(redis, requests(LARGE))
    redis.unlink(keys.input("job-0"))
    redis.hdel(keys.inputs("net"), "job-0")
    assert store(redis, requests(LARGE)) == [KNOWN]
    assert not redis.exists(keys.input("job-0"))


@pytest.mark.parametrize("payload", [SMALL, LARGE], ids=["small", "large"])
def test_a_full_queue_takes_what_fits_and_nothing_of_the_rest(redis: Redis, payload: bytes) -> None:
    assert store(redis, requests(*[payload] * 4), Limits(max_jobs=2)) == [STORED, STORED, FULL, FULL]
    assert redis.llen(keys.queue("net")) == 2
    assert counted(redis) == 2 * len(payload) == sum(map(int, indexed(redis).values()))
    for job_id in ("job-2", "job-3"):
        assert not redis.exists(keys.job(job_id), keys.input(job_id))


def test_bytes_are_bounded_over_all_stored_inputs_and_a_smaller_job_still_fits(redis: Redis) -> None:
    limits = Limits(max_bytes=250)
    assert store(redis, requests(SMALL, SMALL, SMALL, b"x" * 50), limits) == [STORED, STORED, FULL, STORED]
    assert counted(redis) == 250
    # A running job's input counts: it is still in memory.
    redis.delete(keys.queue("net"))
    assert store(redis, [Request("more", 1, b"x")], limits) == [FULL]


def test_the_limit_of_jobs_is_each_queues_own(redis: Redis) -> None:
    limits = Limits(max_jobs=1)
    assert store(redis, [Request("a", 1, SMALL)], limits) == [STORED]
    assert store(redis, [Request("b", 1, SMALL)], limits, JobOptions(priority=Priority.HIGH)) == [STORED]
    assert store(redis, [Request("c", 1, SMALL)], limits) == [FULL]


def test_order_is_kept_over_many_round_trips(redis: Redis) -> None:
    batch = [Request(f"{n}", 1, LARGE if n % 97 == 0 else SMALL) for n in range(3 * CHUNK_JOBS)]
    assert store(redis, batch) == [STORED] * len(batch)
    assert redis.lrange(keys.queue("net"), 0, -1) == [r.job_id.encode() for r in batch]


def test_the_wake_stream_hears_of_a_queue_that_was_empty_only(redis: Redis) -> None:
    for job_id in ("a", "b"):
        store(redis, [Request(job_id, 1, SMALL)])
    assert [fields for _, fields in redis.xrange(keys.WAKE)] == [{b"model": b"net"}]


def test_a_server_that_forgot_the_script_gets_it_again(redis: Redis) -> None:
    store(redis, requests(SMALL))
    redis.script_flush()
    assert store(redis, [Request("x", 1, LARGE), Request("y", 1, SMALL)]) == [STORED, STORED]
    redis.script_flush()
    many = [Request(f"z{n}", 1, SMALL) for n in range(2 * CHUNK_JOBS)]
    assert store(redis, many) == [STORED] * len(many)
    assert redis.llen(keys.queue("net")) == 3 + len(many)


def test_a_payload_that_redis_lost_is_reported(redis: Redis) -> None:
    class Losing(Redis):
        def pipeline(self, *args: object, **kwargs: object):  # type: ignore[no-untyped-def]
            pipe = super().pipeline(*args, **kwargs)
            add = pipe.execute_command

            def without_set(*command: object) -> object:
                return add("PING") if command[0] == "SET" else add(*command)

            pipe.execute_command = without_set
            return pipe

    with pytest.raises(WireError, match="job job-0: Redis lost its payload before the job was stored"):
        store(Losing(connection_pool=redis.connection_pool), requests(LARGE))
    assert not redis.exists(keys.job("job-0"))


def test_nothing_to_store_is_nothing_stored(redis: Redis) -> None:
    assert store(redis, []) == []
    assert redis.dbsize() == 0


def test_queue_full_lists_accepted_and_refused() -> None:
    with pytest.raises(
        QueueFull, match=r"'net' is full: 2 of 4 jobs refused, at most 2 jobs waiting"
    ) as caught:
        refuse_full("net", [STORED, FULL, KNOWN, FULL], "abcd", Limits(max_jobs=2))
    assert caught.value.accepted == ["a", "c"]
    assert caught.value.refused == [1, 3]
    refuse_full("net", [STORED, KNOWN], "ab", Limits())


def test_limits_fall_back_one_by_one() -> None:
    assert Limits(max_jobs=1).over(Limits(5, 6)) == Limits(1, 6)


@pytest.mark.parametrize("bound", [0, -1])
def test_a_bound_below_one_is_refused(bound: int) -> None:
    with pytest.raises(ConfigError, match=f"max_bytes is {bound}, expected a number >= 1, or None"):
        Limits(max_bytes=bound)


def test_job_ids_differ_and_are_rqs() -> None:
    ids = {new_job_id() for _ in range(100)}
    assert len(ids) == 100
    assert all(len(job_id) == 32 and int(job_id, 16) >= 0 for job_id in ids)


def test_the_script_is_the_file() -> None:
    assert SUBMIT.source.startswith("-- Stores jobs of one model")


def store_own(
    redis: Redis, payload: bytes, limits: Limits | None = None, options: JobOptions | None = None
) -> int:
    request = Request("mine", 1, payload)
    return submit_own(redis, "net", [request], "me", options or JobOptions(), limits or Limits())[0]


OTHERS = [(SMALL, b"t" * 100), (SMALL, LARGE), (LARGE, SMALL), (LARGE, b"M" * len(LARGE))]


@pytest.mark.parametrize(("first", "second"), OTHERS)
def test_an_id_that_is_taken_keeps_its_input_and_its_life(redis: Redis, first: bytes, second: bytes) -> None:
    assert store_own(redis, first) == STORED
    assert store_own(redis, second, options=JobOptions(ttl_s=5)) == KNOWN
    assert redis.get(keys.input("mine")) == first
    assert redis.ttl(keys.input("mine")) == -1
    assert counted(redis) == len(first)
    redis.expire(keys.input("mine"), 1000)  # as a failed job's is
    assert store_own(redis, second) == KNOWN
    assert 990 < redis.ttl(keys.input("mine")) <= 1000


@pytest.mark.parametrize(("first", "second"), OTHERS)
def test_an_id_that_is_free_again_takes_over_nothing_of_the_job_before(
    redis: Redis, first: bytes, second: bytes
) -> None:
    store_own(redis, first, options=JobOptions(ttl_s=60))
    redis.set(keys.result("mine"), "of the job before")
    redis.delete(keys.job("mine"), keys.queue("net"))  # as RQ's Job.delete does, and an expiry
    assert store_own(redis, second) == STORED
    assert redis.get(keys.input("mine")) == second
    assert redis.ttl(keys.input("mine")) == -1
    assert counted(redis) == len(second)
    assert not redis.exists(keys.result("mine"))


@pytest.mark.parametrize("payload", [SMALL, LARGE], ids=["small", "large"])
def test_an_id_of_ones_own_is_bounded_as_any(redis: Redis, payload: bytes) -> None:
    limits = Limits(max_bytes=len(payload))
    assert store_own(redis, payload, limits) == STORED
    redis.delete(keys.job("mine"))
    assert store_own(redis, payload, limits) == STORED  # in place of what was left of the one before
    redis.delete(keys.job("mine"), keys.input("mine"), keys.inputs("net"))
    assert store_own(redis, payload, limits) == FULL
    assert not redis.exists(keys.job("mine"), keys.input("mine"))


def test_a_job_that_another_producer_stores_meanwhile_keeps_its_input(redis: Redis) -> None:
    class Slower(Redis):
        def pipeline(self, *args: object, **kwargs: object):  # type: ignore[no-untyped-def]
            pipe = super().pipeline(*args, **kwargs)
            run = pipe.execute

            def late(*more: object) -> object:
                store_own(redis, LARGE)
                return run(*more)

            pipe.execute = late
            return pipe

    slower = Slower(connection_pool=redis.connection_pool)
    assert store_own(slower, b"M" * len(LARGE)) == KNOWN
    assert redis.get(keys.input("mine")) == LARGE
