"""Claims, leases and finishes of one worker."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from itertools import groupby
from typing import Any, cast

from redis import Redis
from redis.exceptions import ResponseError
from rq.defaults import DEFAULT_RESULT_TTL
from rq.utils import utcformat

from tensorq import keys
from tensorq.names import model_queues
from tensorq.scripting import Argument, Script
from tensorq.submission import INLINE_BYTES
from tensorq.wire import MAX_PAYLOAD_BYTES
from tensorq_worker.broker.claimed import Claimed, Want
from tensorq_worker.broker.finished import Finished, Outcome

_PACKAGE = "tensorq_worker.broker"
CLAIM = Script(_PACKAGE, "claim")
FINISH = Script(_PACKAGE, "finish")
BEAT = Script(_PACKAGE, "beat")
GIVE_BACK = Script(_PACKAGE, "give_back")
REAP = Script(_PACKAGE, "reap")
SWEEP = Script(_PACKAGE, "sweep")
MARK = Script(_PACKAGE, "mark")

STAGED_TTL_S = 60
REHEARSAL_TTL_S = 60
RUNNING_TTL_S = 24 * 3600
_FETCH_BYTES = 8 * 1024 * 1024


class Broker:
    """All of one worker's traffic about jobs; every method is one round trip unless it says otherwise.

    Safe to use from several threads, except `claim`, which belongs to one. redis-py's errors pass through:
    the caller decides whether to wait for Redis.

    Args:
        redis: a connection that yields bytes.
        worker: the worker's RQ name.
        lease_s: how long a claim lasts without a beat.
        aging_ms: by how much waiting a lower priority makes up for one level.
        max_bytes: payload bytes of one claim; a single larger job is claimed alone.
        result_ttl_s: how long results are kept where the job does not say.
    """

    def __init__(
        self,
        redis: Redis,
        worker: str,
        *,
        lease_s: int = 90,
        aging_ms: int = 60_000,
        max_bytes: int = 64 * 1024 * 1024,
        result_ttl_s: int = DEFAULT_RESULT_TTL,
    ) -> None:
        self.redis = redis
        self.worker = worker
        self.lease_s = lease_s
        self.aging_ms = aging_ms
        self.max_bytes = max_bytes
        self.result_ttl_s = result_ttl_s
        self._worker_key = keys.WORKER + worker
        self._executions = keys.executions_of(worker)
        self._pending_token: str | None = None
        self._beaten_at: int | str = ""

    def claim(self, wants: Sequence[Want]) -> list[Claimed]:
        """Takes jobs and leases them; a second round trip fetches payloads above 64 KiB.

        A claim whose reply was lost is repeated under its token by the next call, whatever that one wants,
        so nothing popped is forgotten.

        Args:
            wants: per model, in the order in which the byte limit should be spent.

        Returns:
            Leased jobs; function jobs that are not ours among them, with an empty ``model``.
        """
        token = self._pending_token or os.urandom(16).hex()
        self._pending_token = token
        now_text, now_s = _now()
        args: list[Argument] = [
            *(keys.JOB, keys.QUEUE, keys.WIP, keys.EXECUTION, keys.EXECUTIONS, keys.INPUT),
            *(self.worker, token, self.lease_s, keys.LEASE_OFFSET, now_text, now_s),
            *(self.max_bytes, INLINE_BYTES, self.aging_ms),
        ]
        for want in wants:
            args += (want.model, want.max_jobs, want.max_rows)
        reply = CLAIM(self.redis, [keys.claim(self.worker), self._executions, keys.WAKE], args)
        claimed = [Claimed.from_reply(record, self.result_ttl_s) for record in reply]
        self._fetch_large(claimed)
        self._pending_token = None
        return claimed

    def finish(
        self, model: str, jobs: Sequence[Finished], *, tiles: int, rows: int, padding: int, busy_s: float
    ) -> list[Outcome]:
        """Stores results and ends leases.

        Args:
            model: the model that all the jobs are for.
            jobs: what finished; large results are SET first, in the same round trip.
            tiles: tiles run since the last call, for the counters.
            rows: valid rows in them.
            padding: rows added to fill them.
            busy_s: seconds the engine ran.

        Returns:
            For each job what became of it.
        """
        now_text, now_s = _now()
        head: list[Argument] = [
            *(keys.JOB, keys.WIP, keys.FINISHED, keys.EXECUTION, keys.EXECUTIONS, keys.RESULTS),
            *(keys.INPUT, keys.RESULT, keys.STAGED, keys.DONE),
            *(self.worker, now_text, now_s, keys.DONE_LIMIT, tiles, padding, rows, f"{busy_s:.6f}"),
        ]
        script_keys = [
            *(self._worker_key, self._executions),
            *(keys.inputs(model), keys.input_bytes(model), keys.stats(model)),
        ]
        large = [done for done in jobs if len(done.result) > INLINE_BYTES]
        try:
            args = [*head, *self._groups(jobs, INLINE_BYTES)]
            sets = [(*("SET", _staged(d), d.result), "EX", STAGED_TTL_S) for d in large]
            reply = FINISH.run_after(self.redis, sets, [(script_keys, args)])[0]
        except ResponseError:
            # SET is refused under maxmemory, and the script where a staged result is missing, but not the
            # script with all results inline, and it frees the inputs.
            args = [*head, *self._groups(jobs, MAX_PAYLOAD_BYTES)]
            reply = FINISH(self.redis, script_keys, args)
        return [Outcome(code) for code in reply]

    def beat(self, jobs: Iterable[Claimed], worker_ttl_s: int) -> tuple[bool, list[str]]:
        """Renews the leases of jobs in flight and the worker's own life.

        Returns:
            Whether the worker is registered still, and ids that are not this worker's any more.
        """
        now_text, now_s = _now()
        args: list[Argument] = [
            *(keys.JOB, keys.WIP, keys.EXECUTION, keys.EXECUTIONS),
            *(self.lease_s, keys.LEASE_OFFSET, now_text, now_s, worker_ttl_s),
        ]
        for job in jobs:
            args += (job.job_id, job.queue, job.token)
        alive, self._beaten_at, *lost = BEAT(self.redis, [self._worker_key, self._executions], args)
        return alive == 1, [job_id.decode() for job_id in lost]

    @property
    def claim_pending(self) -> bool:
        """Whether the last claim's reply was lost: the next one, even of nothing, brings its jobs."""
        return self._pending_token is not None

    def give_back(self, jobs: Sequence[Claimed]) -> int:
        """Puts jobs back at the heads of their queues, in order and uncharged; returns how many."""
        args: list[Argument] = [
            *(keys.JOB, keys.QUEUE, keys.WIP, keys.EXECUTION, keys.EXECUTIONS, keys.INPUT)
        ]
        for job in jobs:
            args += (job.job_id, job.queue, job.token)
        return cast(int, GIVE_BACK(self.redis, [self._executions, keys.WAKE], args))

    def reap(self, models: Iterable[str], *, crash_cap: int, limit: int = 1000) -> list[tuple[str, str, str]]:
        """Gives back jobs whose lease has lapsed, of any worker; after a beat, those that had by then.

        Returns:
            For each job its id, its queue and ``returned``, ``suspect`` or ``poison``.
        """
        args: list[Argument] = [
            *(keys.JOB, keys.QUEUE, keys.WIP, keys.EXECUTION, keys.EXECUTIONS, keys.WORKER),
            *(keys.INPUT, keys.running(""), keys.LEASE_OFFSET, crash_cap, limit, self._beaten_at),
            *(queue for model in models for queue in model_queues(model)),
        ]
        reply = REAP(self.redis, [keys.WAKE], args)
        return [(job_id.decode(), queue.decode(), word.decode()) for job_id, queue, word in reply]

    def drop_inputs(self, jobs: Iterable[Claimed]) -> None:
        """Drops the inputs of those jobs that were cancelled or deleted; one round trip a model."""
        by_model: dict[str, list[str]] = {}
        for job in jobs:
            if job.model:
                by_model.setdefault(job.model, []).append(job.job_id)
        for model, job_ids in by_model.items():
            self._sweep(model, job_ids)

    def sweep(self, model: str) -> int:
        """Drops inputs that no job needs; several round trips, over the whole index. Returns how many."""
        dropped, cursor = 0, 0
        while True:
            reply = self.redis.hscan(keys.inputs(model), cursor, count=500)
            cursor, entries = cast("tuple[int, dict[bytes, bytes]]", reply)
            if entries:
                dropped += self._sweep(model, entries)
            if cursor == 0:
                return dropped

    def mark_running(self, place: str, job_ids: Iterable[str], ended: Iterable[str] = ()) -> None:
        """Notes, before a launch, which jobs are suspects should the process die.

        Args:
            place: lane and slot, one tile each.
            job_ids: the tile's jobs.
            ended: places whose tiles have ended.
        """
        MARK(self.redis, [keys.running(self.worker)], [RUNNING_TTL_S, place, " ".join(job_ids), *ended])

    def open_connections(self, count: int) -> None:
        """Opens as many connections as threads may need at once: opening one then would cost milliseconds."""
        with ExitStack() as stack:
            for _ in range(count):
                stack.enter_context(self.redis.client()).ping()

    def rehearse(self, job_id: str, payload: bytes) -> bytes:
        """Sends a payload to Redis, fetches it as a claim would and marks its job as run; leaves nothing."""
        key = keys.input(job_id)
        self.redis.set(key, payload, ex=REHEARSAL_TTL_S)
        self.mark_running("rehearsal", [job_id])
        self.redis.hdel(keys.running(self.worker), "rehearsal")
        (fetched,) = cast("list[bytes | None]", self.redis.mget([key]))
        self.redis.unlink(key)
        return payload if fetched is None else fetched

    def _sweep(self, model: str, job_ids: Iterable[str | bytes]) -> int:
        args: list[Argument] = [keys.JOB, keys.INPUT, *job_ids]
        return cast(int, SWEEP(self.redis, [keys.inputs(model), keys.input_bytes(model)], args))

    def _groups(self, jobs: Sequence[Finished], inline_bytes: int) -> Iterator[Argument]:
        for (queue, token, ttl_s, client, started_s), group in groupby(jobs, _shared):
            members = list(group)
            yield from (queue, token, self.result_ttl_s if ttl_s is None else ttl_s, client)
            yield from (f"{started_s:.6f}", len(members))
            for done in members:
                yield done.job.job_id
                yield done.result if len(done.result) <= inline_bytes else b""

    def _fetch_large(self, claimed: Sequence[Claimed]) -> None:
        large = [
            job for job in claimed if job.model and job.payload is None and job.size_bytes > INLINE_BYTES
        ]
        while large:
            taken, size_bytes = 0, 0
            while taken < len(large) and (taken == 0 or size_bytes + large[taken].size_bytes <= _FETCH_BYTES):
                size_bytes += large[taken].size_bytes
                taken += 1
            batch, large = large[:taken], large[taken:]
            payloads = cast("list[Any]", self.redis.mget([keys.input(job.job_id) for job in batch]))
            for job, payload in zip(batch, payloads, strict=True):
                job.payload = payload


def _now() -> tuple[str, str]:
    now_s = time.time()
    return utcformat(datetime.fromtimestamp(now_s, UTC)), f"{now_s:.6f}"


def _shared(done: Finished) -> tuple[str, str, int | None, str, float]:
    job = done.job
    return job.queue, job.token, job.result_ttl_s, job.client, done.started_s


def _staged(done: Finished) -> str:
    return keys.staged(done.job.job_id, done.job.token)
