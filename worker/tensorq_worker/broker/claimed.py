"""A claimed job as the broker hands it on, before anything of it is trusted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rq.defaults import DEFAULT_RESULT_TTL


@dataclass(frozen=True, slots=True)
class Want:
    """How much of a model to claim.

    Attributes:
        model: the model's name.
        max_jobs: jobs at most.
        max_rows: rows at most, by the producers' word; one job is taken even if it has more.
    """

    model: str
    max_jobs: int
    max_rows: int


@dataclass(slots=True)
class Claimed:
    """One job that this worker holds a lease on.

    Attributes:
        job_id: RQ job id.
        queue: the queue it came from.
        token: execution id; with the job id it is the fence of all later writes.
        model: the model it is for; empty for a function job, which is not ours.
        payload: packed inputs; None where Redis has none (expired or tampered with).
        size_bytes: length of the payload, by the producer's word.
        client: whose completion list is told, or empty.
        at_ms: when it was submitted, Unix time in ms by the producer's clock.
        timeout_s: limit of the running part; 0 or less for none.
        deadline_ms: Unix time in ms after which it is not worth running; 0 for none.
        result_ttl_s: how long to keep the result; None for the worker's default.
        alone: it is a suspect of a crash and must not share a tile.
        crashes: crashes while alone, where the cap was reached; such a job must be failed, not run.
        unusual: RQ's own handlers must finish it (callback, webhook, repeat, rate limit, result_ttl 0).
    """

    job_id: str
    queue: str
    token: str
    model: str
    payload: bytes | None
    size_bytes: int
    client: str
    at_ms: int
    timeout_s: int
    deadline_ms: int
    result_ttl_s: int | None
    alone: bool
    crashes: int
    unusual: bool

    @classmethod
    def from_reply(cls, reply: list[Any], default_ttl_s: int = DEFAULT_RESULT_TTL) -> Claimed:
        """Reads one record of claim.lua's reply; a field that is not a number counts as absent.

        Args:
            reply: the record.
            default_ttl_s: how long the worker keeps results where the job does not say.
        """
        job_id, queue, token, word, payload, fields = reply
        _, model, _, size, client, at_ms, timeout, *_ = fields
        rare = fields[9:] if len(fields) > 9 else _NONE
        _, deadline, ttl, *unusual, poison, _, _ = rare
        said = _number(ttl, -2)
        result_ttl = None if said == -2 else said
        kept_s = default_ttl_s if result_ttl is None else result_ttl
        return cls(
            job_id.decode(),
            queue.decode(),
            token.decode(),
            model.decode(errors="replace") if model else "",
            payload,
            _number(size),
            client.decode(errors="replace") if client else "",
            _number(at_ms),
            _number(timeout),
            _number(deadline),
            result_ttl,
            word == b"alone",
            _number(poison),
            kept_s == 0 or any(unusual),
        )


# What a plain job has of the rare fields.
_NONE: tuple[None, ...] = (None,) * 10


def _number(text: bytes | None, default: int = 0) -> int:
    """An integer of a job hash that anybody may have written."""
    if not text:
        return default
    try:
        number = int(text)
    except ValueError:
        return default
    return number if abs(number) < 2**53 else default
