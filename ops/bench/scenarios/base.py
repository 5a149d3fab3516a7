"""Scenario: a worker process, and a client that feeds it and takes its results."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

READY_S = 20.0
SLICE_JOBS = 1000


@dataclass(frozen=True, slots=True)
class Tiles:
    """A worker's counters so far.

    Attributes:
        tiles: batches run.
        rows: valid rows in them.
        padding: rows added to fill them.
    """

    tiles: int
    rows: int
    padding: int

    def __sub__(self, other: Tiles) -> Tiles:
        return Tiles(self.tiles - other.tiles, self.rows - other.rows, self.padding - other.padding)


class Scenario(ABC):
    """One way of getting a model's answers through Redis.

    Args:
        url: the Redis server's.
        repository: folder of models, see `model.write_repository`.

    Attributes:
        key: what it is called in JSON.
        name: what it is called in the table.
        warm_jobs: run before measuring.
    """

    key: str
    name: str
    warm_jobs: int = 512

    def __init__(self, url: str, repository: Path) -> None:
        self.url = url
        self.repository = repository

    @abstractmethod
    def command(self) -> list[str]:
        """The worker's command line, after ``python``."""

    def environment(self) -> Mapping[str, str]:
        """Added to the worker's environment."""
        return {}

    @abstractmethod
    def ready(self) -> bool:
        """Whether the worker would take a job now."""

    @abstractmethod
    def submit(self, x: np.ndarray) -> Sequence[Any]:
        """Stores a job for each row of ``x``, float32[jobs, 128]; returns handles."""

    @abstractmethod
    def collect(self, handles: Sequence[Any], timeout_s: float) -> list[np.ndarray]:
        """Waits for all results; returns them in order, float32[1, 16] each."""

    def tiles(self) -> Tiles:
        """The worker's counters; nothing where it runs job by job."""
        return Tiles(0, 0, 0)

    @abstractmethod
    def close(self) -> None:
        """Closes the client's connections."""

    def wait_ready(self, expect_alive: Callable[[], None]) -> None:
        """Waits for the worker.

        Args:
            expect_alive: raises if the worker has ended.

        Raises:
            SystemExit: it did not get ready in `READY_S`.
        """
        give_up = time.monotonic() + READY_S
        while not self.ready():
            expect_alive()
            if time.monotonic() > give_up:
                raise SystemExit(f"{self.name}: the worker is not ready after {READY_S:.0f} s")
            time.sleep(0.02)
