"""Sampler: device memory over time, read in a thread of its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from tensorq_engines import Gauge

Point = tuple[float, int]


class Sampler:
    """Reads a gauge every few milliseconds and keeps what changed.

    Attributes:
        began_s: when it began, on the clock of `time.perf_counter`.
        points: seconds since then, and bytes in use.
    """

    def __init__(self, gauge: Gauge, pause_s: float = 0.002) -> None:
        self.began_s = time.perf_counter()
        self.points: list[Point] = []
        self._gauge = gauge
        self._pause_s = pause_s
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sampler", daemon=True)

    def __enter__(self) -> Self:
        self.began_s = time.perf_counter()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ending.set()
        self._thread.join()

    def _run(self) -> None:
        while True:
            ended = self._ending.is_set()
            point = (time.perf_counter() - self.began_s, self._gauge.used_bytes() or 0)
            if ended or not self.points or self.points[-1][1] != point[1]:
                self.points.append(point)
            if ended:
                return
            self._ending.wait(self._pause_s)


def thin(points: Sequence[Point], most: int) -> list[Point]:
    """Returns at most ``most`` points, which is 2 or more: the extremes of equal stretches, in order."""
    if len(points) <= most:
        return list(points)
    stretch = -(-len(points) // (most // 2))
    kept: list[Point] = []
    for start in range(0, len(points), stretch):
        part = points[start : start + stretch]
        ends = {min(part, key=lambda point: point[1]), max(part, key=lambda point: point[1])}
        kept += sorted(ends)
    return kept
