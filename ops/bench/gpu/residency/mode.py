"""Mode: three models under one policy, in a process of its own, as the article measured them.

    python3.11 ops/bench/gpu/residency/mode.py JSON

The JSON is of `Order`; what was found is the last line printed. `articles` starts this.
"""

from __future__ import annotations

import time

BEGAN_S = time.monotonic()

import json  # noqa: E402
import sys  # noqa: E402
from collections.abc import Sequence  # noqa: E402
from contextlib import ExitStack  # noqa: E402
from dataclasses import asdict, dataclass  # noqa: E402
from pathlib import Path  # noqa: E402
from statistics import median  # noqa: E402
from typing import Any  # noqa: E402

ROOT = Path(__file__).resolve().parents[4]
sys.path[:0] = [str(ROOT / part) for part in ("", "producer", "engines", "worker")]

from ops.bench.gpu.residency.article import MODELS  # noqa: E402
from ops.bench.gpu.residency.engines import TimedEngine, make_tile, open_engine  # noqa: E402
from ops.bench.gpu.residency.pool import Pool  # noqa: E402
from ops.bench.gpu.residency.sampler import Sampler, thin  # noqa: E402

from tensorq_engines import LoadPolicy, ModelDoesNotFit, create_gauge  # noqa: E402
from tensorq_engines.tensorrt import flavour  # noqa: E402
from tensorq_engines.tensorrt.options import ArenaKind  # noqa: E402

MOST_POINTS = 500


@dataclass(frozen=True, slots=True)
class Mode:
    """What is measured.

    Attributes:
        policy: of all models.
        arena: ``private`` as in the article, or ``auto``: all contexts of a lane share one.
        lanes: how many; rounds take turns over them.
        budget_bytes: None for no limit.
        rounds: of the three models in turn, one row a request.
        steady: requests of one model in a row.
        sampled: whether memory is read every 2 ms during the rounds.
    """

    policy: str
    arena: ArenaKind = "auto"
    lanes: int = 1
    budget_bytes: int | None = None
    rounds: int = 4
    steady: int = 100
    sampled: bool = False

    @property
    def name(self) -> str:
        budget = "" if self.budget_bytes is None else f" {self.budget_bytes / 1e6:.0f} MB"
        lanes = "" if self.lanes == 1 else f", {self.lanes} lanes"
        return f"{self.policy}{budget}, {'private' if self.arena == 'private' else 'shared'}{lanes}"


@dataclass(frozen=True, slots=True)
class Order:
    """What a process is told.

    Attributes:
        models: the repository.
        mode: what to measure.
        spawned_s: when it was started, on the clock of `time.monotonic`, which is the system's.
    """

    models: str
    mode: Mode
    spawned_s: float

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Order:
        data = json.loads(text)
        return cls(data["models"], Mode(**data["mode"]), data["spawned_s"])


def run_mode(order: Order, began_s: float = BEGAN_S) -> dict[str, Any]:
    """Starts, serves the rounds and then each model in a row; returns what was seen."""
    mode, imported_s = order.mode, time.monotonic()
    engines = {name: open_engine(Path(order.models), name) for name in MODELS}
    tiles = {name: make_tile(engine, 1) for name, engine in engines.items()}
    flavour.find().runtime()
    baseline = create_gauge("tensorrt").used_bytes() or 0
    policy = LoadPolicy(mode.policy)
    with Pool(
        list(engines.values()), policy, budget_bytes=mode.budget_bytes, lanes=mode.lanes, arena=mode.arena
    ) as pool:
        predicted = pool.residents.predict(MODELS)
        if policy is LoadPolicy.EAGER:
            for name in MODELS:
                pool.warm(name)
        ready_s = time.monotonic()
        start = pool.used_bytes - baseline
        rounds = _Rounds(pool, engines, tiles, baseline)
        found = rounds.run(mode)
        seen = pool.residency.check_integrity()
        return {
            **asdict(mode),
            "name": mode.name,
            "ready_s": round(ready_s - order.spawned_s, 3),
            "imports_s": round(imported_s - began_s, 3),
            "resident_start_bytes": start,
            **found,
            "steady_p50_ms": {
                name: _steady(pool, name, tiles[name], mode) for name in MODELS if name not in rounds.refused
            },
            "predicted_bytes": asdict(predicted) | {"total_bytes": predicted.total_bytes},
            "charged_bytes": seen.charged.total_bytes,
            "taken_bytes": seen.taken_bytes,
            "drift_bytes": seen.drift_bytes,
            "unaccounted_bytes": seen.unaccounted_bytes,
            "load_ms": {name: _rounded(engine.load_ms) for name, engine in engines.items()},
            "evict_ms": {name: _rounded(engine.close_ms) for name, engine in engines.items()},
        }


class _Rounds:
    """Serves the models in turn.

    Attributes:
        refused: why a model does not fit, by name.
    """

    def __init__(
        self, pool: Pool, engines: dict[str, TimedEngine], tiles: dict[str, Any], baseline: int
    ) -> None:
        self.refused: dict[str, str] = {}
        self._pool = pool
        self._engines = engines
        self._tiles = tiles
        self._baseline = baseline
        self._ms: dict[str, list[float]] = {name: [] for name in MODELS}
        self._loaded: dict[str, list[bool]] = {name: [] for name in MODELS}
        self._resident: list[int] = []
        self._native: dict[str, int] = {}

    def run(self, mode: Mode) -> dict[str, Any]:
        marks: list[tuple[float, str]] = []
        with ExitStack() as stack:
            sampler = stack.enter_context(Sampler(self._pool.gauge)) if mode.sampled else None
            for number in range(mode.rounds):
                for name in MODELS:
                    if sampler is not None:
                        marks.append((round(time.perf_counter() - sampler.began_s, 4), name))
                    self._request(name, number % mode.lanes)
        found: dict[str, Any] = {
            "rounds_ms": {name: _rounded(times) for name, times in self._ms.items()},
            "first_ms": {name: round(times[0], 2) for name, times in self._ms.items() if times},
            "reload_request_ms": {
                name: _rounded(
                    ms for ms, loaded in zip(times[1:], self._loaded[name][1:], strict=True) if loaded
                )
                for name, times in self._ms.items()
            },
            "resident_hot_bytes": self._resident[-1] if self._resident else 0,
            "resident_peak_bytes": max(self._resident, default=0),
            "activation_bytes": self._native,
            "refused": self.refused,
            "loads": {name: self._pool.residents[name].loads for name in MODELS},
            "evictions": {name: self._pool.residents[name].evictions for name in MODELS},
        }
        if sampler is not None:
            points = thin(sampler.points, MOST_POINTS)
            found["points"] = [[round(at_s, 4), size - self._baseline] for at_s, size in points]
            found["marks"] = marks
        return found

    def _request(self, name: str, lane: int) -> None:
        try:
            request = self._pool.request(name, self._tiles[name], lane)
        except ModelDoesNotFit as exc:
            self.refused[name] = str(exc)
            return
        self._ms[name].append(request.ms)
        self._loaded[name].append(request.loaded)
        self._resident.append(self._pool.used_bytes - self._baseline)
        self._native[name] = self._engines[name].model.native.activation_bytes(0)


def _steady(pool: Pool, name: str, tile: Any, mode: Mode) -> float:
    for lane in range(mode.lanes):
        for _ in range(3):
            pool.request(name, tile, lane)
    times = [pool.request(name, tile, number % mode.lanes).ms for number in range(mode.steady)]
    return round(median(times), 3)


def _rounded(times: Any) -> list[float]:
    return [round(ms, 2) for ms in times]


def main(arguments: Sequence[str]) -> int:
    print(json.dumps(run_mode(Order.from_json(arguments[0]))))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
