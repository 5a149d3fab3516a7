"""Graphs: the captured tiles of one model on one lane, and when to capture."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from tensorq_engines.tensorrt.cuda.graph import CaptureFailed, Graph, capture
from tensorq_engines.tensorrt.cuda.stream import Stream
from tensorq_engines.tensorrt.form import Form
from tensorq_engines.tensorrt.process import CHANGES

Key = tuple[Form, int]


@dataclass(slots=True)
class GraphCounters:
    """What happened to a model's tiles since it was first loaded.

    Attributes:
        hits: tiles that replayed a graph.
        misses: tiles that ran eagerly, by reason: ``first`` of their shapes, ``seldom`` seen too few times,
            ``uncaptured`` where the slot's graph is not made yet or was dropped, ``slower`` where replaying
            was measured to be, ``off`` by settings, ``own`` where TensorRT-RTX captures by itself,
            ``dynamic`` outputs, ``failed: WHY`` where a capture failed.
        captures: graphs made.
        delays: captures put off because another thread changed engines.
        failures: captures that failed, by reason; each makes its shapes eager for good.
        evictions: graphs dropped for the bound.
        invalidations: graphs dropped because memory that they know moved.
    """

    hits: int = 0
    misses: Counter[str] = field(default_factory=Counter)
    captures: int = 0
    delays: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    evictions: int = 0
    invalidations: int = 0

    def __add__(self, other: GraphCounters) -> GraphCounters:
        return GraphCounters(
            self.hits + other.hits,
            self.misses + other.misses,
            self.captures + other.captures,
            self.delays + other.delays,
            self.failures + other.failures,
            self.evictions + other.evictions,
            self.invalidations + other.invalidations,
        )


class Graphs:
    """Graphs by form and slot, bounded; the least recently used goes first.

    Only the thread that has the lane's turn calls it.

    Attributes:
        counters: what happened here.
    """

    def __init__(self, stream: Stream, limit: int, after: int) -> None:
        """Makes an empty store.

        Args:
            stream: the lane's.
            limit: the most graphs there may be.
            after: runs of a form that is not hot before it is captured.
        """
        self.counters = GraphCounters()
        self._stream = stream
        self._limit = limit
        self._after = after
        self._graphs: OrderedDict[Key, Graph] = OrderedDict()

    def __len__(self) -> int:
        return len(self._graphs)

    def find(self, form: Form, slot: int) -> Graph | None:
        """Returns the graph of a form for one slot's memory, if there is one, as the last used."""
        key = (form, slot)
        graph = self._graphs.get(key)
        if graph is not None:
            self._graphs.move_to_end(key)
        return graph

    def due(self, form: Form) -> bool:
        """Tells whether a form has run often enough to be captured."""
        return form.eager is None and form.runs >= (1 if form.hot else self._after)

    def add(self, form: Form, slot: int, work: Callable[[], None]) -> Graph | None:
        """Captures a tile and returns its graph; None where that failed or had to be put off.

        Args:
            form: its context has just run it eagerly, and is settled.
            slot: whose host memory the copies in ``work`` use.
            work: queues copy in, run and copy out.

        Raises:
            EngineFatal: the process must end.
        """
        # Not waited for: a load that takes a second must not hold up a tile that can run eagerly.
        if not CHANGES.acquire(blocking=False):
            self.counters.delays += 1
            return None
        try:
            graph = capture(self._stream, work)
        except CaptureFailed as exc:
            form.eager = f"failed: {exc.reason}"
            self.counters.failures[exc.reason] += 1
            return None
        finally:
            CHANGES.release()
        self.counters.captures += 1
        self._graphs[form, slot] = graph
        while len(self._graphs) > self._limit:
            (evicted, _), oldest = self._graphs.popitem(last=False)
            oldest.close()
            # Where more shapes take turns than there may be graphs, each would be captured for one replay.
            evicted.runs = 0
            self.counters.evictions += 1
        return graph

    def miss(self, form: Form) -> None:
        """Counts an eager run that is about to come."""
        if form.eager is not None:
            reason = form.eager
        elif not form.runs:
            reason = "first"
        else:
            reason = "uncaptured" if self.due(form) else "seldom"
        self.counters.misses[reason] += 1

    def refuse(self, form: Form, reason: str) -> None:
        """Drops a form's graphs and makes it eager for good."""
        form.eager = reason
        self.forget(form)

    def drop(self, slot: int | None = None) -> None:
        """Drops all graphs, or those of one slot, because memory that they know is about to move."""
        keys = [key for key in self._graphs if slot is None or key[1] == slot]
        self.counters.invalidations += len(keys)
        self._discard(keys)

    def forget(self, form: Form) -> None:
        """Drops a form's graphs."""
        self._discard([key for key in self._graphs if key[0] is form])

    def close(self) -> None:
        """Destroys all graphs; none may be running."""
        self._discard(list(self._graphs))

    def abandon(self) -> None:
        """Forgets all graphs without destroying them, after an error that this would not survive."""
        self._graphs.clear()

    def _discard(self, keys: Iterable[Key]) -> None:
        for key in keys:
            self._graphs.pop(key).close()
