"""A claimed job as the broker hands it on, before anything of it is trusted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


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
    def from_reply(cls, reply: list[Any]) -> Claimed:
        """Reads one record of claim.lua's reply; a field that is not a number counts as absent."""
        job_id, queue, token, word, payload, fields = reply
        (_, model, _, size, client, at_ms, timeout, _, deadline, ttl, *unusual, poison, _, _) = fields
        result_ttl = None if ttl is None else _number(ttl, -2)
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
            result_ttl if result_ttl != -2 else None,
            word == b"alone",
            _number(poison),
            result_ttl == 0 or any(unusual),
        )


def _number(text: bytes | None, default: int = 0) -> int:
    """An integer of a job hash that anybody may have written."""
    if not text:
        return default
    try:
        number = int(text)
    except ValueError:
        return default
    return number if abs(number) < 2**53 else default
