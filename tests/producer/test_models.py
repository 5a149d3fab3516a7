import json
import time
from dataclasses import replace

import pytest
from redis import Redis

from tensorq import (
    Client,
    Limits,
    ModelInfo,
    ModelResidency,
    ModelState,
    Signature,
    TensorSpec,
    WireError,
    keys,
    models,
)

SIGNATURE = Signature((TensorSpec("x", "float32", ("n", 3)),), (TensorSpec("y", "int64", ("n",)),))
SEEN = ModelResidency("lru", False, 2**20, 1.5e9, hits=7, loads=2, evictions=1, load_ms=15.5)
FULL = ModelInfo(
    "net", SIGNATURE, (1, 8), "tensorrt", Limits(100, None), ModelState.FAILED, "out of memory", SEEN
)


def changed(part: str, by: str) -> bytes:
    """A publication with one part of its text changed."""
    text = FULL.to_json()
    assert text.count(part) == 1
    return text.replace(part, by).encode()


def test_a_publication_has_the_documented_fields() -> None:
    assert json.loads(FULL.to_json()) == {
        "v": 1,
        "name": "net",
        "signature": SIGNATURE.to_dict(),
        "ladder": [1, 8],
        "engine": "tensorrt",
        "limits": {"max_jobs": 100, "max_bytes": None},
        "state": "failed",
        "reason": "out of memory",
        "residency": {
            "policy": "lru",
            "pinned": False,
            "resident_bytes": 2**20,
            "used_at_s": 1.5e9,
            "hits": 7,
            "loads": 2,
            "evictions": 1,
            "load_ms": 15.5,
        },
    }


def test_a_publication_of_an_older_worker_has_no_residency() -> None:
    data = json.loads(FULL.to_json())
    del data["residency"]
    assert ModelInfo.from_json(json.dumps(data)) == replace(FULL, residency=None)


@pytest.mark.parametrize("info", [FULL, ModelInfo("idle", state=ModelState.IDLE)], ids=lambda info: info.name)
def test_what_is_published_is_read_back(redis: Redis, info: ModelInfo) -> None:
    models.publish(redis, info, ttl_s=60)
    assert models.lookup(redis, info.name) == info
    assert models.published(redis) == [info]
    with Client(redis) as client:
        assert client.models() == [info]


def test_models_are_listed_by_name_and_a_lapsed_one_is_not(redis: Redis) -> None:
    for name in ("b", "c", "a"):
        models.publish(redis, ModelInfo(name), ttl_s=60)
    redis.delete(keys.model("c"))
    assert [info.name for info in models.published(redis)] == ["a", "b"]
    assert models.lookup(redis, "c") is None


def test_a_publication_lapses_by_itself(redis: Redis) -> None:
    models.publish(redis, FULL, ttl_s=60)
    assert 50 < redis.ttl(keys.model("net")) <= 60
    score = redis.zscore(keys.MODELS, "net")
    assert score == pytest.approx(time.time() + 60, abs=5)


def test_a_worker_with_a_shorter_life_does_not_shorten_the_other_ones(redis: Redis) -> None:
    models.publish(redis, FULL, ttl_s=600)
    models.publish(redis, FULL, ttl_s=1)
    assert redis.zscore(keys.MODELS, "net") > time.time() + 500


def test_names_that_lapsed_long_ago_are_forgotten(redis: Redis) -> None:
    redis.zadd(keys.MODELS, {"old": time.time() - 7200, "recent": time.time() - 60})
    models.publish(redis, FULL, ttl_s=60)
    assert redis.zrange(keys.MODELS, 0, -1) == [b"recent", b"net"]


def test_nothing_published_is_an_empty_list(redis: Redis) -> None:
    assert models.published(redis) == []


@pytest.mark.parametrize(
    "text",
    [
        *(b"", b"{", b"[]", b"7", b"{}", b'{"v":1}', b"\xff", b"[" * 5000),
        changed("failed", "asleep"),
        changed('"net"', '"../net"'),
        changed("[1,8]", "[Infinity]"),
        changed("[1,8]", "[0]"),
        changed('"max_jobs":100', '"max_jobs":0'),
        changed('"max_jobs":100', '"max_jobs":NaN'),
        changed('"float32"', '"?!"'),
        changed('"float32"', '"O"'),
        changed('["n",3]', "[]"),
        changed('["n",3]', "[null,{}]"),
        changed('"batch_axis":0', '"batch_axis":false'),
    ],
)
def test_what_is_not_a_publication_is_left_out_of_the_list_and_refused_alone(
    redis: Redis, text: bytes
) -> None:
    models.publish(redis, FULL, ttl_s=60)
    redis.zadd(keys.MODELS, {"broken": time.time() + 60, b"\xff": time.time() + 60})
    redis.set(keys.model("broken"), text)
    assert models.published(redis) == [FULL]
    with pytest.raises(WireError, match="not a model's publication"):
        models.lookup(redis, "broken")


def test_a_publication_of_another_version_names_the_remedy() -> None:
    with pytest.raises(WireError, match="has version 2, expected 1; use the same release"):
        ModelInfo.from_json(FULL.to_json().replace('"v":1', '"v":2'))
