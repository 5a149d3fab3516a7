"""What workers publish of the models they serve, and how producers and tools read it."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any, cast

from redis import Redis

from tensorq import keys
from tensorq.errors import ConfigError, WireError
from tensorq.names import validate_model_name
from tensorq.signature import Signature
from tensorq.submission import Limits

VERSION = 1

# Names that lapsed this long ago leave the set; clocks of hosts may differ by less.
_FORGET_AFTER_S = 3600


_MALFORMED = (
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    OverflowError,
    RecursionError,
    ConfigError,
)


class ModelState(StrEnum):
    """What the worker that published last says of a model."""

    READY = "ready"
    LOADING = "loading"
    FAILED = "failed"
    IDLE = "idle"


@dataclass(frozen=True, slots=True)
class ModelResidency:
    """How a model came and went in the memory of the worker that published last.

    Attributes:
        policy: ``eager``, ``lazy`` or ``lru``.
        pinned: whether it stays once it is loaded.
        resident_bytes: what it has taken, what it shares with others apart.
        used_at_s: Unix time in seconds of its last tile or load; None before the first.
        hits: tiles that have begun.
        loads: loads that succeeded.
        evictions: how often it was evicted.
        load_ms: how long its last load took; 0 before the first.
    """

    policy: str
    pinned: bool
    resident_bytes: int
    used_at_s: float | None
    hits: int
    loads: int
    evictions: int
    load_ms: float

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ModelResidency:
        """The inverse of `dataclasses.asdict`.

        Raises:
            ValueError, KeyError, TypeError: it is not that.
        """
        used_at_s = data["used_at_s"]
        return cls(
            policy=str(data["policy"]),
            pinned=bool(data["pinned"]),
            resident_bytes=int(data["resident_bytes"]),
            used_at_s=None if used_at_s is None else float(used_at_s),
            hits=int(data["hits"]),
            loads=int(data["loads"]),
            evictions=int(data["evictions"]),
            load_ms=float(data["load_ms"]),
        )


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """A model as a worker publishes it.

    Attributes:
        name: the model's name.
        signature: its inputs and outputs; None where the worker could not read them.
        ladder: ascending batch sizes, in rows, that it is run with.
        engine: what runs it, such as ``tensorrt``.
        limits: bounds of its queues.
        state: ready, loading, failed, or idle: known and not loaded.
        reason: why, where the state is not ready; else empty.
        residency: when it was in memory; None where the worker does not know the model.
    """

    name: str
    signature: Signature | None = None
    ladder: tuple[int, ...] = ()
    engine: str = ""
    limits: Limits = field(default_factory=Limits)
    state: ModelState = ModelState.READY
    reason: str = ""
    residency: ModelResidency | None = None

    def to_json(self) -> str:
        """The publication; `from_json` takes it back."""
        return json.dumps(
            {
                "v": VERSION,
                "name": self.name,
                "signature": self.signature.to_dict() if self.signature is not None else None,
                "ladder": list(self.ladder),
                "engine": self.engine,
                "limits": {"max_jobs": self.limits.max_jobs, "max_bytes": self.limits.max_bytes},
                "state": self.state.value,
                "reason": self.reason,
                "residency": asdict(self.residency) if self.residency is not None else None,
            },
            separators=(",", ":"),
        )

    @classmethod
    def from_json(cls, text: bytes | str) -> ModelInfo:
        """The inverse of `to_json`.

        Raises:
            WireError: it is not a publication, or of a version that this release does not know.
        """
        try:
            data: dict[str, Any] = json.loads(text)
            if data["v"] != VERSION:
                raise WireError(
                    f"a model's publication has version {data['v']!r}, expected {VERSION}; "
                    "use the same release of tensorq for producers and workers"
                )
            signature, residency = data["signature"], data.get("residency")
            return cls(
                name=validate_model_name(data["name"]),
                signature=Signature.from_dict(signature) if signature is not None else None,
                ladder=_ladder(data["ladder"]),
                engine=str(data["engine"]),
                limits=_limits(data["limits"]),
                state=ModelState(data["state"]),
                reason=str(data["reason"]),
                residency=ModelResidency.from_dict(residency) if residency is not None else None,
            )
        except _MALFORMED as exc:
            if isinstance(exc, WireError):
                raise
            raise WireError(f"not a model's publication: {type(exc).__name__}: {exc}") from exc


def publish(redis: Redis, info: ModelInfo, ttl_s: int) -> None:
    """Publishes a model for ``ttl_s`` seconds; of several workers the last one to publish is believed."""
    now = time.time()
    with redis.pipeline(transaction=True) as pipe:
        pipe.set(keys.model(info.name), info.to_json(), ex=ttl_s)
        pipe.zadd(keys.MODELS, {info.name: now + ttl_s}, gt=True)
        pipe.zremrangebyscore(keys.MODELS, "-inf", now - _FORGET_AFTER_S)
        pipe.execute()


def published(redis: Redis) -> list[ModelInfo]:
    """All models published now, by name; a publication that cannot be read is left out.

    Args:
        redis: a connection that does not decode responses.
    """
    members = cast(list[bytes], redis.zrange(keys.MODELS, 0, -1))
    names = sorted(member.decode(errors="replace") for member in members)
    # The keys' own expiry decides what is published: the set's scores come from the workers' clocks.
    texts = redis.mget([keys.model(name) for name in names]) if names else []
    infos = []
    for text in texts:
        try:
            infos += [ModelInfo.from_json(text)] if text is not None else []
        except WireError:
            continue
    return infos


def lookup(redis: Redis, name: str) -> ModelInfo | None:
    """What is published of a model now, or None.

    Raises:
        WireError: something that cannot be read.
    """
    text = redis.get(keys.model(name))
    return ModelInfo.from_json(text) if text is not None else None


def _ladder(sizes: Any) -> tuple[int, ...]:
    if not all(type(rows) is int and rows > 0 for rows in sizes):
        raise ValueError(f"ladder {sizes!r}: expected batch sizes")
    return tuple(sizes)


def _limits(bounds: Any) -> Limits:
    pair = bounds.get("max_jobs"), bounds.get("max_bytes")
    if not all(bound is None or type(bound) is int for bound in pair):
        raise ValueError(f"limits {bounds!r}: expected whole numbers or null")
    return Limits(*pair)
