"""Pool: models, lanes and a budget, and requests that are served one by one."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

import numpy as np

from tensorq_engines import Engine, LoadPolicy, Residency, Residents, create_gauge, warm
from tensorq_engines.tensorrt.lane import TensorRtLane
from tensorq_engines.tensorrt.options import ArenaKind, LaneOptions

PATIENCE_S = 30.0


@dataclass(frozen=True, slots=True)
class Request:
    """One tile that was asked for.

    Attributes:
        ms: from the asking to the outputs in the caller's memory.
        run_ms: of that, the tile itself; a first tile after a load also makes its context.
        loaded: whether the model had to be loaded.
        outputs: the caller's own.
    """

    ms: float
    run_ms: float
    loaded: bool
    outputs: Mapping[str, np.ndarray] = field(repr=False)


class Pool:
    """Closes its lanes and engines at the end.

    Attributes:
        residents: the account.
        residency: of the models.
        lanes: as many as were asked for.
        gauge: of the device memory.
    """

    def __init__(
        self,
        engines: Sequence[Engine],
        policy: LoadPolicy = LoadPolicy.LRU,
        *,
        budget_bytes: int | None = None,
        lanes: int = 1,
        arena: ArenaKind = "auto",
    ) -> None:
        self.gauge = create_gauge("tensorrt")
        self.residents = Residents(budget_bytes, lanes, shared=arena != "private")
        self.residency = Residency(self.residents, self.gauge)
        self.lanes = [TensorRtLane(self.residents.slots, LaneOptions(arena=arena)) for _ in range(lanes)]
        for lane in self.lanes:
            self.residency.attach(lane)
        for engine in engines:
            self.residency.add(engine, policy)

    @property
    def used_bytes(self) -> int:
        """Device memory in use, by the driver's account."""
        return self.gauge.used_bytes() or 0

    def request(self, name: str, tile: Mapping[str, np.ndarray], lane: int = 0) -> Request:
        """Makes a model resident, runs one tile of it on a lane and waits for it.

        Raises:
            ModelDoesNotFit: there is no room for it as things are.
            ModelLoadFailed: it cannot be loaded.
            TileFailed: the tile failed.
        """
        started, loads = time.perf_counter(), self.residents[name].loads
        engine = self._use(name)
        ready = time.perf_counter()
        try:
            outputs = self.lanes[lane].run(engine, tile)
        finally:
            self.residency.done(name)
        ended = time.perf_counter()
        loaded = self.residents[name].loads > loads
        return Request(1000 * (ended - started), 1000 * (ended - ready), loaded, outputs)

    def warm(self, name: str) -> None:
        """Makes a model resident and runs its ladder on every lane."""
        engine = self._use(name)
        try:
            for lane in self.lanes:
                warm(lane, engine)
        finally:
            self.residency.done(name)

    def _use(self, name: str) -> Engine:
        until_s = time.perf_counter() + PATIENCE_S
        while time.perf_counter() < until_s:
            self.residency.ensure(name)
            engine = self.residency.use(name)
            # Another lane's load may have evicted it in between.
            if engine is not None:
                return engine
        raise TimeoutError(f"{name} was evicted before it could be used, again and again for {PATIENCE_S} s")

    def close(self) -> None:
        """Closes lanes, then engines."""
        for lane in self.lanes:
            lane.close()
        self.residency.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
