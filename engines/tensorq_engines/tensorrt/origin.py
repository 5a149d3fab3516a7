"""Origin: where a model's plan comes from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING

from tensorq_engines.base.errors import ModelLoadFailed
from tensorq_engines.tensorrt import flavour as flavours
from tensorq_engines.tensorrt.cuda.device import Device
from tensorq_engines.tensorrt.description import Description, describe_estimate
from tensorq_engines.tensorrt.flavour import Flavour
from tensorq_engines.tensorrt.native import naming
from tensorq_engines.tensorrt.plan import CACHE, PlanFile

if TYPE_CHECKING:
    from tensorq_engines.repository.entry import ModelEntry


Stamp = frozenset[tuple[str, int, int]]
"""Files by path, with time of change in ns and size in bytes."""


def _stamp(folder: Path, plan: Path) -> Stamp:
    files = [path for path in folder.rglob("*") if CACHE not in path.parts and path.is_file()]
    try:
        stats = [(str(path), path.stat()) for path in (*files, plan)]
    except OSError:
        return frozenset()  # one went meanwhile: equal to no other stamp, as the plan is in all of them
    return frozenset((path, stat.st_mtime_ns, stat.st_size) for path, stat in stats)


class Origin(ABC):
    """A model's source file. Nothing is read before it is asked."""

    def __init__(self, entry: ModelEntry | None) -> None:
        """Keeps the model's entry; None for a plan that belongs to no repository."""
        self._entry = entry

    @abstractmethod
    def find(self) -> PlanFile | Description:
        """Returns the plan, or else what is known of one that is not built yet.

        Takes no longer than reading the source.

        Raises:
            ModelLoadFailed: the source or a sidecar cannot be used.
        """

    @abstractmethod
    def get(self) -> PlanFile:
        """Returns the plan, built first where there is none; that can take minutes.

        Raises:
            ModelLoadFailed: there is no plan and none can be built.
        """

    def load_plugins(self, flavour: Flavour) -> None:
        """Makes the operators known that the plan needs besides TensorRT's; before it is deserialized.

        Raises:
            ModelLoadFailed: a library is not there or cannot be loaded.
        """
        if self._entry is not None:
            from tensorq_engines.tensorrt.builder.plugins import load_plugins

            load_plugins(flavour, self._entry)


class PlanOrigin(Origin):
    """A plan in the model's folder, with or without a sidecar."""

    def __init__(self, name: str, path: Path, entry: ModelEntry | None = None) -> None:
        super().__init__(entry)
        self._name = name
        self._path = path

    def find(self) -> PlanFile:
        """See `Origin.find`."""
        with naming(f"model {self._name!r}"):
            return PlanFile.find(self._path)

    def get(self) -> PlanFile:
        """See `Origin.get`."""
        return self.find()


class OnnxOrigin(Origin):
    """An ONNX file, whose plan is built once and kept."""

    _entry: ModelEntry

    def __init__(self, entry: ModelEntry) -> None:
        super().__init__(entry)
        self._last: tuple[Stamp, PlanFile] | None = None

    def find(self) -> PlanFile | Description:
        """See `Origin.find`; an unchanged folder is not read again."""
        from tensorq_engines.tensorrt.builder import find

        plan = self._known() or find(self._entry, self._flavour(), Device.probe())
        return self._estimate() if plan is None else self._keep(plan)

    def get(self) -> PlanFile:
        """See `Origin.get`; an unchanged folder is not read again, so that a reload takes no longer."""
        from tensorq_engines.tensorrt.builder import find_or_build

        return self._keep(self._known() or find_or_build(self._entry, self._flavour(), Device.probe()))

    def _estimate(self) -> Description:
        """What the plan will have, with sizes guessed from the graph."""
        from tensorq_engines.sizing.accuracy import context_bytes
        from tensorq_engines.sizing.estimate import Build, estimate_plan
        from tensorq_engines.tensorrt.builder.order import place_order
        from tensorq_engines.tensorrt.builder.source import read_graph, read_source

        order = place_order(self._entry, self._flavour(), Device.probe())
        recipe, graph = order.recipe, read_graph(self._entry)
        build = Build(recipe.precision, recipe.options.optimization_level)
        try:
            guess = estimate_plan(graph, order.signature, recipe.profiles, build, context_bytes())
            footprint = guess.footprint
        except ModelLoadFailed:  # an estimate: a model that onnx cannot infer over still runs
            footprint = read_source(self._entry).header.footprint
        return describe_estimate(order.signature, recipe.profiles, footprint)

    def _known(self) -> PlanFile | None:
        """The plan found last, where neither it nor anything in the model's folder has changed."""
        if self._last is None:
            return None
        stamp, plan = self._last
        return plan if _stamp(self._entry.folder, plan.path) == stamp else None

    def _keep(self, plan: PlanFile) -> PlanFile:
        self._last = _stamp(self._entry.folder, plan.path), plan
        return plan

    def _flavour(self) -> Flavour:
        with naming(f"model {self._entry.name!r}"):
            return flavours.find()
