"""Waiting for jobs without one poll a job.

Workers push the ids of ended jobs on their client's completion list. One of the waiting threads at a time
reads it and hands each id to every wait that wants it. The list is a hint: a cancel by RQ's tools, an
expiry or a stock worker's failure pushes nothing, so each wait also looks at the statuses of what is
outstanding, seldom for jobs of this client and more often for those whose completions go elsewhere.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Collection, Iterator
from contextlib import contextmanager

from redis import Redis

from tensorq import keys, status
from tensorq.connection import block_limit_s

READ_IDS = 1000
CHECK_IDS = 2000
CHECK_EVERY_S = 2.0
POLL_FIRST_S = 0.005
POLL_LAST_S = 0.25
# A shorter block is not worth asking for, and one of zero lasts for ever.
SHORTEST_BLOCK_S = 0.02


class Completions:
    """The completion list of one client in one process, shared by its threads.

    Args:
        redis: a connection that does not decode responses.
        client_id: whose list.
    """

    def __init__(self, redis: Redis, client_id: str) -> None:
        self.client_id = client_id
        self.redis = redis
        # Reentrant: an abandoned wait ends wherever the garbage collector finds it, in here too.
        self.lock = threading.RLock()
        self._key = keys.done(client_id)
        self._block_s = block_limit_s(redis)
        self._reading = False
        self._waits: set[Wait] = set()
        # Ended jobs that nobody waited for when their hint came; the oldest are dropped.
        self._spare: dict[str, None] = {}

    @contextmanager
    def waiting(self, job_ids: Collection[str], *, polled: bool) -> Iterator[Wait]:
        """Registers a wait: from here on no hint for these jobs is lost to it.

        Args:
            job_ids: what to wait for.
            polled: some of them are not announced on this list, so it is not worth blocking on.
        """
        wait = Wait(self, job_ids, polled)
        with self.lock:
            self._waits.add(wait)
            # Not by going through what was kept: that may be far more, for each of many waits.
            for job_id in wait.take([job_id for job_id in job_ids if job_id in self._spare]):
                self._spare.pop(job_id, None)
        try:
            yield wait
        finally:
            with self.lock:
                self._waits.discard(wait)
                self._keep(wait.ready)
                self._hand_over()

    def turn(self, wait: Wait, longest_s: float) -> None:
        """Reads the list for all, or lets another thread do so, until ``wait`` has ids or time is over."""
        with self.lock:
            if wait.ready:
                return
            if self._reading or wait.polled:
                wait.blocked = True
                wait.woken.wait(longest_s)
                wait.blocked = False
                return
            self._reading = True
        hints: list[bytes] = []
        try:
            hints = self._read(longest_s)
        finally:
            with self.lock:
                self._reading = False
                self._deliver({hint.decode() for hint in hints})
                if wait.ready:
                    self._hand_over()

    def _read(self, longest_s: float) -> list[bytes]:
        hints: list[bytes] | None = self.redis.lpop(self._key, READ_IDS)  # type: ignore[assignment]
        if hints:
            return hints
        block_s = min(longest_s, self._block_s)
        if block_s < SHORTEST_BLOCK_S:
            time.sleep(min(longest_s, SHORTEST_BLOCK_S))
            return []
        first = self.redis.blpop([self._key], timeout=round(block_s, 3))
        if first is None:
            return []
        more: list[bytes] | None = self.redis.lpop(self._key, READ_IDS)  # type: ignore[assignment]
        return [first[1], *(more or ())]

    def _deliver(self, job_ids: set[str]) -> None:
        if not job_ids:
            return
        wanted: set[str] = set()
        for wait in list(self._waits):
            taken = wait.take(job_ids)
            wanted |= taken
            if taken and wait.blocked:
                wait.woken.notify()
        self._keep(job_ids - wanted)

    def _keep(self, job_ids: Collection[str]) -> None:
        self._spare.update(dict.fromkeys(job_ids))
        while len(self._spare) > keys.DONE_LIMIT:
            self._spare.pop(next(iter(self._spare)), None)

    def _hand_over(self) -> None:
        """Wakes one blocked thread to read the list in turn."""
        if not self._reading:
            # One with ids at hand is about to leave with them.
            heirs = (
                wait for wait in list(self._waits) if wait.blocked and not wait.polled and not wait.ready
            )
            heir = next(heirs, None)
            if heir is not None:
                heir.woken.notify()


class Wait:
    """One caller's wait; made by `Completions.waiting`, whose lock guards it.

    Attributes:
        outstanding: ids that are not known to have ended.
        ready: ids that have ended and were not handed out yet.
        woken: told when ``ready`` grows or when it is this thread's turn to read.
        blocked: the caller sleeps on ``woken``.
        polled: the wait looks at statuses often, and never reads the list.
    """

    def __init__(self, completions: Completions, job_ids: Collection[str], polled: bool) -> None:
        self.outstanding = set(job_ids)
        self.ready: set[str] = set()
        self.woken = threading.Condition(completions.lock)
        self.blocked = False
        self._completions = completions
        self.polled = polled
        self._interval_s = POLL_FIRST_S if polled else CHECK_EVERY_S
        self._unchecked: deque[str] = deque()
        self._check_at = -math.inf

    def next(self, until: float) -> set[str]:
        """Waits for jobs to end.

        Args:
            until: moment of ``time.monotonic``, in seconds; infinity to wait for ever.

        Returns:
            Ids that have ended, at least one; none when time is over.
        """
        while True:
            with self._completions.lock:
                if self.ready:
                    ready, self.ready = self.ready, set()
                    return ready
            now = time.monotonic()
            # When time is over each has had its turn: one that ended without a hint is no timeout.
            if now >= self._check_at or (now >= until and self._unchecked):
                self._check()
            elif now >= until:
                return set()
            else:
                self._completions.turn(self, min(self._check_at, until) - now)

    def take(self, job_ids: Collection[str]) -> set[str]:
        """Marks those of ``job_ids`` that are outstanding as ready, and returns them."""
        taken = self.outstanding.intersection(job_ids)
        self.outstanding -= taken
        self.ready |= taken
        return taken

    def settle(self, job_ids: Collection[str]) -> None:
        """Ends the wait for jobs whose outcome the caller has."""
        with self._completions.lock:
            self.outstanding.difference_update(job_ids)
            self.ready.difference_update(job_ids)

    def resume(self, job_ids: Collection[str]) -> None:
        """Waits on for jobs that were handed out and have not ended: RQ tries them again."""
        with self._completions.lock:
            self.outstanding.update(job_ids)

    def _check(self) -> None:
        """Looks at the statuses of some outstanding jobs, all of them in turn."""
        if not self._unchecked:
            with self._completions.lock:
                self._unchecked.extend(self.outstanding)
        sample = [self._unchecked.popleft() for _ in range(min(CHECK_IDS, len(self._unchecked)))]
        sample = [job_id for job_id in sample if job_id in self.outstanding]
        statuses = status.read(self._completions.redis, sample)
        ended = [job_id for job_id, found in zip(sample, statuses, strict=True) if found.ended]
        with self._completions.lock:
            self.take(ended)
        # Where most had ended unannounced, the hints are gone: go on at once.
        pause_s = 0.0 if 2 * len(ended) > len(sample) else self._interval_s
        if self.polled and not ended:
            self._interval_s = min(2 * self._interval_s, POLL_LAST_S)
        self._check_at = time.monotonic() + pause_s
