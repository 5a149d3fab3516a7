"""Startup: describes the worker's models, and loads and warms those that are to be there from the start."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from redis.exceptions import RedisError

from tensorq.errors import TensorqError
from tensorq_engines import EngineFatal, Fits, LoadPolicy, ModelLoadFailed, warm
from tensorq_worker.broker import Broker
from tensorq_worker.errors import EagerLoadFailed, WorkerFault
from tensorq_worker.loop.lanes import Lanes
from tensorq_worker.loop.rehearsal import Rehearsal
from tensorq_worker.loop.stop import Stop
from tensorq_worker.pools import Pools
from tensorq_worker.served import Served

log = logging.getLogger("rq.worker")


class Startup:
    """Runs on the main thread, before the loop does.

    Args:
        broker: the worker's.
        models: what the worker serves.
        pools: where they are loaded.
        lanes: where they are warmed.
        stop: ends it early.
    """

    def __init__(
        self, broker: Broker, models: Mapping[str, Served], pools: Pools, lanes: Lanes, stop: Stop
    ) -> None:
        self._broker = broker
        self._models = models
        self._pools = pools
        self._lanes = lanes
        self._stop = stop

    def run(self, preload: bool) -> None:
        """Loads and warms eager and pinned models.

        Args:
            preload: and then, in the order served, others that may be evicted and for which there is room.

        Raises:
            EagerLoadFailed: an eager model cannot be loaded or does not run.
            WorkerFault: the process must end.
        """
        for served in self._models.values():
            self._describe(served)
        for served in self._models.values():
            if served.stays:
                self._open(served)
        for served in self._models.values():
            if preload and not served.stays and served.policy is LoadPolicy.LRU:
                self._open_where_it_fits(served)
        # What the runtime has loaded by now is the process's own, whichever models come and go.
        self._pools.rebase()

    def _describe(self, served: Served) -> None:
        if self._stop.requested:
            return
        try:
            _ = served.engine
        except ModelLoadFailed:
            log.error("model %s is not served until that is mended; the others are", served.name)

    def _open_where_it_fits(self, served: Served) -> None:
        if served.name not in self._pools:
            return
        if isinstance(self._pools[served.name].room_for(served.name), Fits):
            self._open(served)
        else:
            log.info("model %s is loaded when it is first used: there is no room beside others", served.name)

    def _open(self, served: Served) -> None:
        """Loads a model and runs its ladder the whole way, so that its first job is as fast as the next."""
        if self._stop.requested:
            return
        served.warming = True
        try:
            engine = served.load()
            lane = self._lanes.of(engine.kind)[0].lane
            served.costs.measure(lane, engine, warm(lane, engine))
            Rehearsal(self._broker, self._lanes, self._pools, self._stop).run(served)
        except EngineFatal as exc:
            raise WorkerFault(str(exc)) from exc
        except TensorqError as exc:
            if served.policy is LoadPolicy.EAGER:
                raise EagerLoadFailed(
                    f"model {served.name!r} is to be there from the start (load = 'eager'): {exc}"
                ) from exc
            log.error("model %s: %s", served.name, exc)
        except RedisError as exc:
            # It is loaded: only its way through Redis was not tried.
            log.error("model %s: not warmed the whole way: Redis: %s", served.name, exc)
        finally:
            served.warming = False
