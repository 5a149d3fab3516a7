"""Fence: RQ's transactions, committed only while this worker holds the job's lease.

RQ's handlers take a connection and open pipelines on it. They are given a connection whose pipelines WATCH
the job and its execution, check that both are still ours, add our own writes, and only then EXEC.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from redis import Redis
from redis.client import Pipeline
from redis.exceptions import WatchError

from tensorq import keys
from tensorq_worker.broker import Claimed
from tensorq_worker.errors import LeaseLost

Extra = Callable[["Pipeline"], None]


class Fence:
    """What ties a transaction to one lease.

    Attributes:
        job: the lease.
        extra: queues our own writes on the transaction, just before EXEC.
        lost: a commit was refused because the lease is gone.
        committed: a transaction went through.
    """

    def __init__(self, job: Claimed, extra: Extra) -> None:
        self.job = job
        self.extra = extra
        self.lost = False
        self.committed = False

    @property
    def watched(self) -> tuple[str, str]:
        """Keys whose change means that the lease may be gone."""
        return keys.job(self.job.job_id), keys.execution(self.job.job_id, self.job.token)

    def check(self, redis: Redis) -> None:
        """Returns if the lease is held.

        Raises:
            LeaseLost: it is not.
        """
        member = f"{self.job.job_id}:{self.job.token}"
        held = redis.zscore(keys.wip(self.job.queue), member) is not None
        # Queued: somebody saved the job as it was read before it was claimed.
        if not held or redis.hget(keys.job(self.job.job_id), "status") not in (b"started", b"queued"):
            self.lost = True
            raise LeaseLost(f"job {self.job.job_id}: the lease {self.job.token} is gone")


class FencedRedis:
    """A connection whose pipelines are fenced; everything else passes through."""

    def __init__(self, redis: Redis, fence: Fence) -> None:
        self._redis = redis
        self._fence = fence

    def pipeline(self, transaction: bool = True, shard_hint: str | None = None) -> FencedPipeline:
        """A fenced transaction."""
        redis = self._redis
        pipe = FencedPipeline(redis.connection_pool, redis.response_callbacks, transaction, shard_hint)
        pipe.fence, pipe.plain = self._fence, redis
        return pipe

    def __getattr__(self, name: str) -> Any:
        return getattr(self._redis, name)


class FencedPipeline(Pipeline):
    """A transaction that commits only under the lease."""

    fence: Fence
    plain: Redis

    def watch(self, *names: Any) -> Any:
        """Watches the lease beside what the caller watches."""
        reply = super().watch(*names, *self.fence.watched)
        self.fence.check(self.plain)
        return reply

    def execute(self, raise_on_error: bool = True) -> list[Any]:
        """Commits with our own writes, unless nothing was queued or the fence's work is done.

        Raises:
            LeaseLost: the lease is gone; nothing was written.
            WatchError: the caller watched a key of its own that changed; it must start over.
        """
        if self.fence.committed or not self.command_stack:
            return super().execute(raise_on_error)
        if self.watching:
            self.fence.extra(self)
            replies = super().execute(raise_on_error)
            self.fence.committed = True
            return replies
        queued = list(self.command_stack)
        while True:
            self.reset()
            self.watch()
            self.multi()
            self.command_stack.extend(queued)
            self.fence.extra(self)
            try:
                replies = super().execute(raise_on_error)
            except WatchError:
                continue
            self.fence.committed = True
            return replies
