"""Costs of one model's tiles: the table that its stages plan by, and when it is read and written."""

from __future__ import annotations

import logging
import threading

from tensorq_engines import BuildFailed, CostStore, CostTable, Engine, EngineError, ModelEntry

log = logging.getLogger("rq.worker")


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
