"""Costs of one model's tiles: the table that its stages plan by, and when it is read and written."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence

from tensorq_engines import (
    BuildFailed,
    CostStore,
    CostTable,
    Engine,
    EngineError,
    Lane,
    ModelEntry,
    TileFailed,
    WarmTile,
    measure_costs,
)
from tensorq_engines.costs import RowShapes
from tensorq_engines.costs.measure import WARM_ROUNDS

log = logging.getLogger("rq.worker")

ROUNDS = 20
MOST_MEASURING_S = 3.0


class KeptCosts:
    """A cost table that outlives the process.

    What cannot be read or written is measured anew and costs no job anything.

    Attributes:
        table: what is known; the same object for good.
    """

    def __init__(self) -> None:
        self.table = CostTable()
        self._store: CostStore | None = None
        self._saved = self.table.version
        self._lock = threading.Lock()

    def open(self, entry: ModelEntry, engine: Engine) -> None:
        """Takes what is kept for this engine; does nothing where that was done, or there is no plan yet."""
        if self._store is not None:
            return
        try:
            identity = engine.identity
        except EngineError as exc:
            log.warning("model %s: costs of tiles are not kept: %s", entry.name, exc)
            return
        if identity is None:
            return
        store = CostStore(entry.name, entry.folder, identity)
        fresh = self.table.version == 0
        for row_shapes, costs_ms in store.load().known.items():
            self.table.put(row_shapes, costs_ms)
        if fresh:
            self._saved = self.table.version
        self._store = store

    def measure(self, lane: Lane, engine: Engine, warmed: Sequence[WarmTile]) -> None:
        """Measures the shapes that were warmed, where not all of their sizes are known; other lanes idle.

        A shape of which that would take longer than `MOST_MEASURING_S` becomes known while it runs.

        Args:
            lane: a lane of the engine's kind with all slots free.
            engine: loaded.
            warmed: what `warm` returned.

        Raises:
            EngineFatal: the process must end.
        """
        names = [spec.name for spec in engine.signature.inputs]
        skip = 1 if engine.signature.batch_axis == 0 else 0
        tiles: dict[RowShapes, list[WarmTile]] = {}
        for tile in warmed:
            tiles.setdefault(tuple(tile.shapes[name][skip:] for name in names), []).append(tile)
        for row_shapes, alike in tiles.items():
            if {tile.rows for tile in alike} <= set(self.table.known.get(row_shapes, {})):
                continue
            if (WARM_ROUNDS + ROUNDS) * sum(tile.seconds for tile in alike) > MOST_MEASURING_S:
                continue
            try:
                costs_ms = measure_costs(
                    lane, engine, dict(zip(names, row_shapes, strict=True)), rounds=ROUNDS
                )
            except TileFailed as exc:
                log.warning("model %s: costs of tiles are not measured: %s", engine.name, exc)
                return
            self.table.put(row_shapes, costs_ms)
            words = ", ".join(f"{size} rows {cost_ms:.3g} ms" for size, cost_ms in costs_ms.items())
            log.info("model %s: tiles of %s take %s", engine.name, row_shapes, words)

    def save(self) -> None:
        """Writes what is known, where it changed since; from any thread."""
        with self._lock:
            version = self.table.version
            if self._store is None or version == self._saved:
                return
            # Not tried again before the next change: a folder that cannot be written to stays so.
            self._saved = version
            try:
                self._store.save(self.table.known)
            except (BuildFailed, OSError) as exc:
                log.warning("costs of tiles are not kept: %s", exc)
