"""A model run by TensorRT."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self
from weakref import WeakSet

from tensorq.signature import Signature
from tensorq_engines.base.digest import file_digest
from tensorq_engines.base.engine import Engine
from tensorq_engines.base.errors import EngineError, ModelLoadFailed
from tensorq_engines.base.footprint import Footprint
from tensorq_engines.base.memory import EngineMemory
from tensorq_engines.base.options import EngineOptions
from tensorq_engines.base.profile import Profile
from tensorq_engines.tensorrt import flavour as flavours
from tensorq_engines.tensorrt.context import Refused
from tensorq_engines.tensorrt.cuda.device import Device, driver_version
from tensorq_engines.tensorrt.cuda.status import expect_alive, fatal
from tensorq_engines.tensorrt.description import (
    BatchAxis,
    Description,
    describe_native,
    describe_sidecar,
)
from tensorq_engines.tensorrt.graphs import GraphCounters
from tensorq_engines.tensorrt.model import GraphSizes, LoadedModel
from tensorq_engines.tensorrt.native import NativeEngine, deserialize, naming
from tensorq_engines.tensorrt.origin import OnnxOrigin, Origin, PlanOrigin
from tensorq_engines.tensorrt.plan import PlanFile
from tensorq_engines.tensorrt.seat import Seat

if TYPE_CHECKING:
    from tensorq_engines.repository.entry import ModelEntry


class TensorRtEngine(Engine):
    """A plan that is deserialized on load; contexts, graphs and activation memory are the lanes'.

    A plan with a sidecar is described without a GPU. One without is deserialized to be described. An ONNX
    file that no plan was built from yet is described as its plan will be, with sizes guessed; the first
    `load` builds it and puts measured ones in their place.

    Attributes:
        source: the model file: a plan, or an ONNX file.
    """

    kind: ClassVar[str] = "tensorrt"
    shares_activations: ClassVar[bool] = True

    def __init__(
        self,
        name: str,
        source: Path,
        *,
        origin: Origin | None = None,
        batch_axis: BatchAxis = None,
        graph_sizes: GraphSizes = "ladder",
    ) -> None:
        """Keeps what it is told and reads nothing.

        Args:
            name: the model's name.
            source: the model file.
            origin: how a plan is made of it; None where it is one.
            batch_axis: 0 or ``"none"`` where what is derived from the plan is wrong.
            graph_sizes: which batch sizes are captured.
        """
        super().__init__(name)
        self.source = source
        self._origin = PlanOrigin(name, source) if origin is None else origin
        self._batch_axis: BatchAxis = batch_axis
        self._graph_sizes: GraphSizes = graph_sizes
        self._description: Description | None = None
        self._guess: Description | None = None
        self._plan: PlanFile | None = None
        self._identity: str | None = None
        self._model: LoadedModel | None = None
        self._seats: WeakSet[Seat] = WeakSet()
        self._seating = threading.Lock()
        self._counters: list[GraphCounters] = []

    @classmethod
    def from_entry(cls, entry: ModelEntry, options: EngineOptions) -> Self:
        """Builds the engine of a model in a repository."""
        return cls(
            entry.name,
            entry.source,
            origin=OnnxOrigin(entry)
            if entry.source.suffix == ".onnx"
            else PlanOrigin(entry.name, entry.source, entry),
            batch_axis=entry.settings.batch_axis,
            graph_sizes=entry.settings.graphs.sizes,
        )

    @property
    def loaded(self) -> bool:
        """See `Engine.loaded`."""
        return self._model is not None

    @property
    def signature(self) -> Signature:
        """See `Engine.signature`."""
        return self._described.signature

    @property
    def profiles(self) -> tuple[Profile, ...]:
        """See `Engine.profiles`."""
        return self._described.profiles

    @property
    def ladder(self) -> tuple[int, ...]:
        """See `Engine.ladder`."""
        return self._described.ladder

    @property
    def footprint(self) -> Footprint:
        """See `Engine.footprint`."""
        return self._described.footprint

    @property
    def memory(self) -> EngineMemory:
        """See `Engine.memory`: weights as the driver showed them, contexts as they were measured alone."""
        model, described = self._model, self._description
        if model is None or described is None:
            return EngineMemory()
        with self._seating:
            seats = [seat.memory for seat in self._seats]
        sizes = described.context_bytes
        taken = model.native.taken_bytes
        return EngineMemory(
            taken if taken > 0 else described.footprint.weights_bytes,
            sum(seat.output_bytes + sum(sizes[index] for index in seat.profiles) for seat in seats),
            sum(seat.activation_bytes for seat in seats),
        )

    @property
    def identity(self) -> str | None:
        """See `Engine.identity`."""
        if self._identity is None and self._described and self._plan is not None:
            self._identity = self._identify(self._plan)
        return self._identity

    @property
    def graphs(self) -> GraphCounters:
        """What happened to this model's tiles, over all lanes, since the engine was made."""
        return sum(self._counters, GraphCounters())

    @property
    def model(self) -> LoadedModel:
        """What lanes run; only while the engine is loaded."""
        if self._model is None:
            raise ModelLoadFailed(f"model {self.name!r} is not loaded: call load() first")
        return self._model

    def attach(self, seat: Seat) -> None:
        """Takes note of a lane that made a seat for this engine, so that `close` can close it first."""
        with self._seating:
            self._seats.add(seat)
        self._counters.append(seat.graphs.counters)

    def load(self) -> None:
        """See `Engine.load`."""
        if self.loaded:
            return
        expect_alive()
        plan = self._origin.get()
        native = self._deserialize(plan)
        try:
            described = self._describe(plan, native)
            model = LoadedModel(
                self.name,
                native,
                described.signature,
                described.profiles,
                described.ladder,
                self._graph_sizes,
            )
            with naming(self._what(plan)):
                model.expect_match()
        except BaseException:
            native.close()
            raise
        self._description, self._model, self._plan = described, model, plan

    def close(self) -> None:
        """See `Engine.close`: waits for the lanes, then graphs, contexts and engine go, in this order.

        After an error that left the process without a GPU nothing is destroyed.
        """
        model, self._model = self._model, None
        if model is None:
            return
        with self._seating:
            seats = list(self._seats)
            self._seats.clear()
        for seat in seats:
            seat.leave()
        self._counters = [self.graphs]
        if fatal() is None:
            model.native.close()
        else:
            model.native.abandon()

    @property
    def _described(self) -> Description:
        if self._description is not None:
            return self._description
        if self._guess is not None:
            return self._guess
        plan = self._origin.find()
        if isinstance(plan, Description):
            self._guess = plan
            return plan
        self._plan = plan
        if plan.sidecar is not None:
            with naming(self._what(plan)):
                self._description = describe_sidecar(plan.sidecar, self._batch_axis)
            return self._description
        native = self._deserialize(plan)
        try:
            self._description = self._describe(plan, native)
        finally:
            native.close()
        return self._description

    def _describe(self, plan: PlanFile, native: NativeEngine) -> Description:
        if self._description is not None:
            return self._description
        try:
            with naming(self._what(plan)):
                if plan.sidecar is not None:
                    return describe_sidecar(plan.sidecar, self._batch_axis)
                return describe_native(native, plan.path.stat().st_size, self._batch_axis)
        except ModelLoadFailed:
            raise
        except (Refused, EngineError) as exc:
            raise ModelLoadFailed(f"{self._what(plan)}: {exc}; build it anew") from exc

    def _identify(self, plan: PlanFile) -> str:
        with naming(self._what(plan)):
            flavour = flavours.find(plan.sidecar.flavour if plan.sidecar is not None else None)
            try:
                digest = file_digest(plan.path) if plan.sidecar is None else plan.sidecar.sha256
            except OSError as exc:
                raise ModelLoadFailed(f"it cannot be read: {exc.strerror or exc}") from exc
        device = Device.probe()
        parts = {
            "plan": digest,
            "runtime": f"{flavour.name} {flavour.version_text}",
            "device": None if device is None else f"{device.name}, {driver_version()}",
        }
        return json.dumps(parts, sort_keys=True)

    def _deserialize(self, plan: PlanFile) -> NativeEngine:
        what = self._what(plan)
        with naming(f"model {self.name!r}"):
            data = plan.read()
        try:
            Device.require()
        except EngineError as exc:
            raise ModelLoadFailed(
                f"{what}: {exc}; a plan runs on a GPU only: give the worker one, or use the ONNX file with "
                "engine 'onnxruntime'"
            ) from exc
        with naming(what):
            flavour = flavours.find(plan.sidecar.flavour if plan.sidecar is not None else None)
        self._origin.load_plugins(flavour)
        return deserialize(flavour, data, what)

    def _what(self, plan: PlanFile) -> str:
        return f"model {self.name!r}: {plan.path}"
