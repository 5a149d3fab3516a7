"""Stage: rows of one model and one shape of free axes, waiting in order."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from tensorq_engines.costs.table import CostTable, RowShapes
from tensorq_worker.planner import ArrivalRate, Tiling
from tensorq_worker.tiles.run import Run


@dataclass(frozen=True, slots=True)
class Part:
    """Rows ``start`` to ``stop`` of a job, in one tile."""

    run: Run
    start: int
    stop: int

    @property
    def rows(self) -> int:
        """How many rows."""
        return self.stop - self.start


class Stage:
    """Waiting rows that can share a tile.

    Attributes:
        ladder: the batch sizes that rows of this shape may run at, ascending.
        arrivals: how fast rows of this shape come.
        rows: rows waiting, those of dropped jobs included until they are taken.
    """

    __slots__ = (
        "_costs",
        "_costs_ms",
        "_parts",
        "_row_shapes",
        "_tiling",
        "_version",
        "arrivals",
        "ladder",
        "rows",
    )

    def __init__(
        self, ladder: tuple[int, ...], costs: CostTable | None = None, row_shapes: RowShapes = ()
    ) -> None:
        """Makes an empty stage.

        Args:
            ladder: the batch sizes, ascending.
            costs: what tiles of the model cost; None where that is not known.
            row_shapes: of the rows that wait here.
        """
        self.ladder = ladder
        self._costs = CostTable() if costs is None else costs
        self._row_shapes = row_shapes
        self._version = -1
        self._costs_ms: dict[int, float] = {}
        self._tiling: Tiling
        self.arrivals = ArrivalRate()
        self.rows = 0
        self._parts: deque[Part] = deque()

    @property
    def tiling(self) -> Tiling:
        """Over the ladder, at what tiles cost now; made anew only when that changes."""
        version = self._costs.version
        if version != self._version:
            costs_ms = self._costs.costs_ms(self._row_shapes, self.ladder)
            if costs_ms != self._costs_ms:
                self._tiling, self._costs_ms = Tiling(self.ladder, costs_ms), costs_ms
            self._version = version
        return self._tiling

    def add(self, run: Run) -> None:
        """Puts all rows of a job behind those waiting."""
        self._parts.append(Part(run, 0, run.rows))
        self.rows += run.rows
        self.arrivals.add(run.rows, run.since_ms)

    def take(self, rows: int) -> list[Part]:
        """Takes up to ``rows`` rows from the front; the last job may be split."""
        taken: list[Part] = []
        while rows > 0 and self._parts:
            part = self._parts.popleft()
            if part.run.dropped:
                self.rows -= part.rows
                continue
            if part.rows > rows:
                self._parts.appendleft(Part(part.run, part.start + rows, part.stop))
                part = Part(part.run, part.start, part.start + rows)
            taken.append(part)
            rows -= part.rows
            self.rows -= part.rows
        return taken

    def oldest(self) -> Run | None:
        """The job that waits in front, dropped ones removed; None where nothing waits."""
        while self._parts and self._parts[0].run.dropped:
            self.rows -= self._parts.popleft().rows
        return self._parts[0].run if self._parts else None

    def waiting(self) -> list[Run]:
        """The jobs that have rows here, in order."""
        return [part.run for part in self._parts if not part.run.dropped]
