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
from tensorq_engines.tensorrt.plan import PlanFile

if TYPE_CHECKING:
    from tensorq_engines.repository.entry import ModelEntry


class Origin(ABC):
    """A model's source file. Nothing is read before it is asked."""

    def __init__(self, entry: ModelEntry | None) -> None:
        """Keeps the model's entry; None for a plan that belongs to no repository."""
        self._entry = entry

    @abstractmethod
    def find(self) -> PlanFile | None:
        """Returns the plan if there is one; takes no longer than reading the source.

        Raises:
            ModelLoadFailed: the source or a sidecar cannot be used.
        """

    @abstractmethod
    def get(self) -> PlanFile:
        """Returns the plan, built first where there is none; that can take minutes.

        Raises:
            ModelLoadFailed: there is no plan and none can be built.
        """

    @abstractmethod
    def estimate(self) -> Description:
        """Returns what is known of a plan that is not there yet."""

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

    def estimate(self) -> Description:
        """Never asked for: the plan is there."""
        raise NotImplementedError


class OnnxOrigin(Origin):
    """An ONNX file, whose plan is built once and kept."""

    _entry: ModelEntry

    def __init__(self, entry: ModelEntry) -> None:
        super().__init__(entry)

    def find(self) -> PlanFile | None:
        """See `Origin.find`."""
        from tensorq_engines.tensorrt.builder import find

        return find(self._entry, self._flavour(), Device.probe())

    def get(self) -> PlanFile:
        """See `Origin.get`."""
        from tensorq_engines.tensorrt.builder import find_or_build

        return find_or_build(self._entry, self._flavour(), Device.probe())

    def estimate(self) -> Description:
        """See `Origin.estimate`: what the plan will have, with sizes guessed from the graph."""
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

    def _flavour(self) -> Flavour:
        with naming(f"model {self._entry.name!r}"):
            return flavours.find()
