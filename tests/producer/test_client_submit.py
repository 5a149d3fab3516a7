from collections.abc import Callable

import numpy as np
import pytest
from redis import Redis
from rq.job import Job as RQJob

from fixtures.finisher import FakeWorker, finish
from tensorq import (
    Client,
    ConfigError,
    InputError,
    Limits,
    ModelInfo,
    QueueFull,
    Signature,
    TensorSpec,
    UnknownModel,
    WireError,
    keys,
    models,
    wire,
)
from tensorq.submission import INLINE_BYTES

F32 = np.float32
X = {"x": np.zeros((2, 3), F32)}


def stored(redis: Redis) -> set[bytes]:
    """All keys but the publications."""
    return {key for key in redis.scan_iter() if b":model" not in key}


def sent(redis: Redis, job_id: str) -> dict[str, np.ndarray]:
    payload = redis.get(keys.input(job_id))
    assert payload is not None
    return wire.unpack(payload)


def test_a_job_is_stored_with_what_was_given(client: Client, redis: Redis) -> None:
    array = np.arange(6, dtype=F32).reshape(2, 3)
    job = client.submit("net", {"x": array})
    assert (job.model, redis.lrange(keys.queue("net"), 0, -1)) == ("net", [job.id.encode()])
    np.testing.assert_array_equal(sent(redis, job.id)["x"], array)


def test_the_array_may_change_after_the_call(client: Client, redis: Redis) -> None:
    array = np.ones((1, 3), F32)
    job = client.submit("net", array)
    array[:] = 7
    assert sent(redis, job.id)["x"].tolist() == [[1, 1, 1]]


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6, dtype=F32).reshape(3, 2).T,
        np.arange(12, dtype=F32).reshape(2, 6)[:, ::2],
        np.arange(6, dtype=F32)[::-1].reshape(2, 3),
        np.arange(6, dtype=">f4").reshape(2, 3),
        np.array([[np.nan, np.inf, -0.0]], F32),
        np.broadcast_to(F32(4), (2, 3)),
    ],
    ids=["transposed", "strided", "reversed", "big endian", "nan", "broadcast"],
)
def test_values_arrive_whatever_the_memory_layout(client: Client, redis: Redis, array: np.ndarray) -> None:
    for _ in range(2):
        got = sent(redis, client.submit("net", {"x": array}).id)["x"]
        np.testing.assert_array_equal(got, array)
        assert got.dtype == np.dtype("<f4")


@pytest.mark.parametrize("trust", [False, True])
def test_a_0_d_array_keeps_its_rank(redis: Redis, trust: bool) -> None:
    models.publish(redis, ModelInfo("net", Signature((TensorSpec("x", "int64", ()),), (), None)), ttl_s=60)
    with Client(redis, trust=trust) as client:
        got = sent(redis, client.submit("net", {"x": np.array(5)}).id)["x"]
    assert (got.shape, int(got)) == ((), 5)


@pytest.mark.parametrize("elements", [INLINE_BYTES // 4 - 100, INLINE_BYTES, 2_000_000])
def test_small_and_large_payloads_arrive_alike(redis: Redis, elements: int) -> None:
    array = np.arange(elements, dtype=F32)
    with Client(redis) as client:
        np.testing.assert_array_equal(sent(redis, client.submit("net", {"x": array}).id)["x"], array)


BAD_INPUTS = {
    "unknown input": ({"x": X["x"], "y": X["x"]}, "unknown input 'y'"),
    "missing input": ({}, "missing input 'x'"),
    "float64": ({"x": np.zeros((1, 3))}, r"convert it with \.astype\('float32'\) or pass cast=True"),
    "rank": ({"x": np.zeros(3, F32)}, r"expected \(rows, 3\); one row needs a leading axis"),
    "fixed axis": ({"x": np.zeros((1, 4), F32)}, r"got shape \(1, 4\), expected \(rows, 3\)"),
    "zero rows": ({"x": np.zeros((0, 3), F32)}, "zero rows; nothing to run"),
    "object": ({"x": np.array([[None] * 3])}, "got dtype object"),
    "void": ({"x": np.zeros((1, 3), "V4")}, r"got dtype \|V4"),
    "text": ({"x": np.array([["a", "b", "c"]])}, "got dtype <U1"),
    "0-d": ({"x": np.array(1, F32)}, r"got shape \(\)"),
    "list": ({"x": [[1, 2, 3]]}, "got list, expected a numpy array"),
    "not a dict": ([1, 2], "expected a dict of numpy arrays"),
}


@pytest.mark.parametrize("case", BAD_INPUTS)
def test_a_bad_input_is_refused_and_leaves_nothing(client: Client, redis: Redis, case: str) -> None:
    tensors, says = BAD_INPUTS[case]
    calls: list[Callable[[], object]] = [
        lambda: client.submit("net", tensors),  # type: ignore[arg-type]
        lambda: client.submit_many("net", [X, tensors, X]),  # type: ignore[list-item]
    ]
    for call in calls:
        with pytest.raises(InputError, match=says):
            call()
    assert stored(redis) == set()


@pytest.mark.parametrize("dtype", ["O", "V4", "U3", "S3", "M8[s]"])
def test_dtypes_that_cannot_be_sent_are_refused_on_trust_too(redis: Redis, dtype: str) -> None:
    with Client(redis) as client, pytest.raises(InputError, match="cannot be sent; expected bool, int"):
        client.submit("net", {"x": np.zeros(2, dtype)})
    assert stored(redis) == set()


def test_too_large_a_payload_is_refused_before_it_is_built(redis: Redis) -> None:
    with Client(redis) as client, pytest.raises(WireError, match="exceeds 536870912 bytes"):
        client.submit("net", {"x": np.zeros((600, 2**20), np.uint8)})


@pytest.mark.parametrize("name", ["", "a/b", "a@high", "../x", "a b"])
def test_a_wrong_model_name_is_refused(client: Client, redis: Redis, name: str) -> None:
    with pytest.raises(UnknownModel, match="is not a model name"):
        client.submit(name, X)
    assert stored(redis) == set()


def test_a_model_that_nobody_serves_is_refused_with_the_known_ones(client: Client, redis: Redis) -> None:
    with pytest.raises(UnknownModel, match=r"did you mean 'pair'\? Published now: net, pair"):
        client.submit("pare", X)
    assert stored(redis) == set()


def test_a_cast_is_done_where_asked_for_and_lossless(client: Client, redis: Redis) -> None:
    job = client.submit("net", {"x": np.ones((1, 3))}, cast=True)
    assert sent(redis, job.id)["x"].dtype == F32
    with pytest.raises(InputError, match="do not survive the conversion"):
        client.submit("net", {"x": np.full((1, 3), 0.1)}, cast=True)


@pytest.mark.parametrize("options", [{"prio": "high"}, {"timeout": 0}, {"retry": "x"}], ids=str)
def test_a_bad_option_is_refused_and_leaves_nothing(
    client: Client, redis: Redis, options: dict[str, object]
) -> None:
    with pytest.raises(ConfigError):
        client.submit("net", X, **options)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="job_id"):
        client.submit("net", X, job_id="a b")
    assert stored(redis) == set()


def test_many_jobs_keep_their_order(client: Client, redis: Redis) -> None:
    jobs = client.submit_many("net", ({"x": np.full((1, 3), n, F32)} for n in range(300)), priority="low")
    assert redis.lrange(keys.queue("net@low"), 0, -1) == [job.id.encode() for job in jobs]
    assert [sent(redis, job.id)["x"][0, 0] for job in jobs] == list(range(300))
    assert client.submit_many("net", []) == []


def test_an_error_of_the_callers_own_iterable_leaves_nothing(client: Client, redis: Redis) -> None:
    def broken():  # type: ignore[no-untyped-def]
        yield X
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        client.submit_many("net", broken())
    assert stored(redis) == set()


def test_a_repeated_job_id_is_one_job(client: Client, redis: Redis) -> None:
    first = client.submit("net", X, job_id="nightly-7")
    assert client.submit("net", X, job_id="nightly-7") == first
    assert redis.llen(keys.queue("net")) == 1


@pytest.mark.parametrize("rows", [1, 10_000], ids=["small", "large"])
def test_a_second_submit_of_an_id_leaves_the_first_ones_input(
    client: Client, redis: Redis, rows: int
) -> None:
    client.submit("net", {"x": np.zeros((rows, 3), np.float32)}, job_id="nightly-7")
    client.submit("net", {"x": np.ones((rows, 3), np.float32)}, job_id="nightly-7", ttl=5)
    with FakeWorker(redis, "net"):
        assert client.result("nightly-7", timeout=5)["x"].sum() == 0


def test_an_id_of_a_job_that_was_deleted_gets_the_new_jobs_result(client: Client, redis: Redis) -> None:
    client.submit("net", X, job_id="nightly-7")
    finish(redis, "net", {"nightly-7": X})
    RQJob.fetch("nightly-7", connection=redis).delete()
    job = client.submit("net", {"x": np.ones((1, 3), np.float32)}, job_id="nightly-7")
    with FakeWorker(redis, "net"):
        assert job.result(timeout=5)["x"].sum() == 3


def test_a_job_that_expired_and_is_submitted_anew_is_counted_once(client: Client, redis: Redis) -> None:
    for _ in range(3):
        client.submit("net", X, job_id="nightly-7", ttl=60)
        redis.delete(keys.job("nightly-7"))  # as its expiry does
    assert int(redis.get(keys.input_bytes("net")) or 0) == redis.strlen(keys.input("nightly-7"))


def test_a_queue_full_of_jobs_refuses_and_lists_what_it_took(redis: Redis) -> None:
    with Client(redis, limits=Limits(max_jobs=3)) as client:
        jobs = client.submit_many("net", [X] * 2)
        with pytest.raises(QueueFull, match="at most 3 jobs waiting") as caught:
            client.submit_many("net", [X] * 3)
        assert caught.value.refused == [1, 2]
        waiting = [job.id.encode() for job in (*jobs, *caught.value.accepted)]
        assert redis.lrange(keys.queue("net"), 0, -1) == waiting
        assert redis.hlen(keys.inputs("net")) == 3
        assert sum(map(int, redis.hvals(keys.inputs("net")))) == int(redis.get(keys.input_bytes("net")) or 0)
        assert len([key for key in stored(redis) if b":input:" in key]) == 3
        with pytest.raises(QueueFull):
            client.submit("net", X)


@pytest.mark.parametrize("elements", [10, INLINE_BYTES])
def test_a_queue_full_of_bytes_keeps_nothing_of_the_refused(redis: Redis, elements: int) -> None:
    tensors = {"x": np.zeros((1, elements), F32)}
    size = len(wire.pack(tensors))
    with Client(redis, limits=Limits(max_bytes=2 * size)) as client:
        with pytest.raises(QueueFull, match=f"and {2 * size} bytes stored") as caught:
            client.submit_many("net", [tensors] * 3)
        assert (len(caught.value.accepted), caught.value.refused) == (2, [2])
        assert int(redis.get(keys.input_bytes("net")) or 0) == 2 * size
        assert len([key for key in stored(redis) if b":input:" in key]) == 2
        assert caught.value.accepted[0].cancel()
        client.submit("net", tensors)


def test_limits_come_from_the_publication_where_the_client_has_none(redis: Redis) -> None:
    models.publish(redis, ModelInfo("net", limits=Limits(max_jobs=1)), ttl_s=60)
    with Client(redis) as client, pytest.raises(QueueFull):
        client.submit_many("net", [X] * 2)
    with Client(redis, limits=Limits(max_jobs=5)) as client:
        assert len(client.submit_many("net", [X] * 2)) == 2


def test_queue_length_counts_all_priorities(client: Client) -> None:
    for priority in ("high", "normal", "low"):
        client.submit("net", X, priority=priority)
    assert client.queue_length("net") == 3
    with pytest.raises(UnknownModel):
        client.queue_length("a/b")
