"""Submits the jobs when they are due, each until Redis has said that it has it."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Sequence

from ops.chaos import models
from ops.chaos.server import Server
from ops.chaos.work import Kind, Work
from redis.exceptions import RedisError

from tensorq import Client
from tensorq.errors import RedisUnavailable
from tensorq.jobhash import JobOptions
from tensorq.names import Priority
from tensorq.submission import Limits, Request, submit

AGAIN_S = 0.1
RESULT_TTL_S = 3600


class Producer:
    """Submits on a thread of its own.

    Args:
        server: where to.
        planned: what and when.
        started: `time.monotonic` of the run's start.
    """

    def __init__(self, server: Server, planned: Sequence[Work], started: float) -> None:
        self._server = server
        self._planned = planned
        self._started = started
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="producer", daemon=True)
        self.submitted = 0
        self.repeated = 0
        self.errors: Counter[str] = Counter()

    @property
    def done(self) -> bool:
        return not self._thread.is_alive()

    def __enter__(self) -> Producer:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        with Client(self._server.url) as client:
            for work in self._planned:
                wait_s = self._started + work.at_s - time.monotonic()
                if wait_s > 0 and self._stop.wait(wait_s):
                    return
                while not self._submit(client, work):
                    self.repeated += 1
                    if self._stop.wait(AGAIN_S):
                        return
                self.submitted += 1

    def _submit(self, client: Client, work: Work) -> bool:
        try:
            if work.kind in (Kind.GARBAGE, Kind.MISFIT):
                self._submit_by_hand(work)
                return True
            client.submit(
                work.model,
                models.tensors(work, len(self._planned)),
                job_id=work.job_id,
                priority=work.priority,
                result_ttl=RESULT_TTL_S,
                retry=work.retries or None,
                depends_on=[work.parent] if work.parent else [],
            )
        except (RedisUnavailable, RedisError) as exc:
            self.errors[type(exc.__cause__ or exc).__name__] += 1
            return False
        return True

    def _submit_by_hand(self, work: Work) -> None:
        options = JobOptions(priority=Priority(work.priority))
        request = Request(work.job_id, work.rows, models.payload(work, len(self._planned)))
        with self._server.client() as redis:
            submit(redis, work.model, [request], "", options, Limits())
