"""A client of a real, empty Redis, and a published model to submit to."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from redis import Redis

from tensorq import Client, ModelInfo, Signature, TensorSpec, models

X = Signature(
    inputs=(TensorSpec("x", "float32", ("n", 3)),),
    outputs=(TensorSpec("y", "float32", ("n", 3)),),
)
PAIR = Signature(
    inputs=(TensorSpec("image", "float32", ("n", 3, "h")), TensorSpec("mask", "bool", ("n", "h"))),
    outputs=(TensorSpec("y", "float32", ("n",)),),
)


@pytest.fixture
def client(redis: Redis) -> Iterator[Client]:
    """A client; the models ``net`` (input x, float32, rows of 3) and ``pair`` are published."""
    models.publish(redis, ModelInfo("net", X, (1, 8, 32), "reference"), ttl_s=60)
    models.publish(redis, ModelInfo("pair", PAIR, (1,), "reference"), ttl_s=60)
    with Client(redis) as client:
        yield client
