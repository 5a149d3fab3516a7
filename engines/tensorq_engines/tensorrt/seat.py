"""Seat: one loaded engine's place on one lane: its contexts, the forms of its tiles, and its graphs."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from tensorq_engines.base.admission import Shapes
from tensorq_engines.base.errors import EngineError, TileFailed
from tensorq_engines.tensorrt.context import Context, Refused
from tensorq_engines.tensorrt.cuda import memory
from tensorq_engines.tensorrt.cuda.errors import CudaOutOfMemory
from tensorq_engines.tensorrt.cuda.graph import CaptureFailed, Graph
from tensorq_engines.tensorrt.dynamic_outputs import DynamicOutput
from tensorq_engines.tensorrt.form import Form
from tensorq_engines.tensorrt.graphs import Graphs
from tensorq_engines.tensorrt.lane_device import LaneDevice
from tensorq_engines.tensorrt.layout import Layout, Tensor, aligned
from tensorq_engines.tensorrt.model import LoadedModel
from tensorq_engines.tensorrt.options import LaneOptions
from tensorq_engines.tensorrt.process import CHANGES
from tensorq_engines.tensorrt.profile_choice import choose_profile
from tensorq_engines.tensorrt.staging import Staging
from tensorq_engines.tensorrt.trial import replay_is_slower

MAX_FORMS = 512


@dataclass(frozen=True, slots=True)
class SeatMemory:
    """What an engine's contexts on one lane have taken.

    Attributes:
        profiles: of each context that there is.
        activation_bytes: what contexts have that share no arena.
        output_bytes: of outputs whose size only a run tells.
    """

    profiles: tuple[int, ...]
    activation_bytes: int
    output_bytes: int


class Seat:
    """Made with an engine's first tile on a lane. Only the thread that has the lane's turn calls it.

    Attributes:
        model: the engine and what it was described by.
        graphs: its captured tiles here.
        closed: whether nothing can run here any more.
    """

    closed = False

    def __init__(
        self, model: LoadedModel, device: LaneDevice, options: LaneOptions, leave: Callable[[Seat], None]
    ) -> None:
        """Makes an empty seat.

        Args:
            model: loaded, and outlives the seat.
            device: the lane's.
            options: the lane's.
            leave: takes the lane's turn, waits for its stream, calls `close` and forgets the seat.
        """
        self.model = model
        self.leave = partial(leave, self)
        self.graphs = Graphs(device.stream, options.graph_limit, options.graph_after)
        self._device = device
        self._trials = options.graph_trials
        self._reason = None if options.graphs else "off"
        if not model.native.flavour.captures:
            self._reason = "own"
        self._contexts: dict[int, Context] = {}
        self._dynamic: dict[int, dict[str, DynamicOutput]] = {}
        self._inputs = tuple(port.name for port in model.native.inputs)
        self._forms: OrderedDict[tuple[tuple[int, ...] | None, ...], Form] = OrderedDict()

    @property
    def activation_bytes(self) -> int:
        """The most that a context of this seat needs of the lane's arena."""
        return max((context.activation_bytes for context in self._contexts.values()), default=0)

    @property
    def io_bytes(self) -> int:
        """The most that a tile of this seat needs of the lane's device inputs and outputs."""
        return max((aligned(form.room[0]) + form.room[1] for form in self._forms.values()), default=0)

    @property
    def memory(self) -> SeatMemory:
        """What its contexts have for themselves; from any thread."""
        contexts = tuple(self._contexts.values())
        private = self._device.activations is None
        outputs = [output for made in tuple(self._dynamic.values()) for output in made.values()]
        return SeatMemory(
            tuple(context.profile for context in contexts),
            sum(context.activation_bytes for context in contexts) if private else 0,
            sum(output.size_bytes for output in outputs),
        )

    def has_run(self, shapes: Shapes) -> bool:
        """Tells whether there is a form of ``shapes``, which are admitted then; from any thread."""
        return len(shapes) == len(self._inputs) and self._key(shapes) in self._forms

    def form(self, shapes: Shapes) -> Form:
        """Returns the form of tiles of ``shapes``, which the engine admits.

        Raises:
            Refused: TensorRT does not take them.
            CudaOutOfMemory: a context of the profile does not fit.
        """
        key = self._key(shapes)
        form = self._forms.get(key)
        if form is not None:
            self._forms.move_to_end(key)
            return form
        form = self._make_form(shapes)
        self._forms[key] = form
        form.room = self._room(form)
        while len(self._forms) > MAX_FORMS:
            self.graphs.forget(self._forms.popitem(last=False)[1])
        return form

    def run(self, form: Form, staging: Staging, spare: Iterable[Staging]) -> Layout:
        """Queues a tile: copy in, run, copy out; replays its graph where there is one.

        Args:
            form: the tile's, for which the device has reserved memory.
            staging: holds the inputs, and is not touched until the tile is done.
            spare: stagings that no tile owns, whose graphs may be captured too.

        Returns:
            Where the outputs will lie in the staging's output block.

        Raises:
            Refused: TensorRT returned False.
            CudaError: a copy or the launch failed.
            EngineFatal: the process must end.
        """
        graph = self.graphs.find(form, staging.index)
        if graph is not None:
            staging.mark_begin(self._device.stream)
            graph.launch(self._device.stream)
            self.graphs.counters.hits += 1
            return form.outputs
        self.graphs.miss(form)
        self._prepare(form)
        staging.mark_begin(self._device.stream)
        outputs = self._enqueue(form, staging)
        form.runs += 1
        if self.graphs.due(form):
            self._capture(form, staging, spare if form.hot else ())
        return outputs

    def close(self) -> None:
        """Destroys graphs, then contexts; nothing of them may be running. Idempotent."""
        self.closed = True
        self.graphs.close()
        self._forms.clear()
        with CHANGES:
            for context in self._contexts.values():
                context.close()
        self._contexts.clear()
        for outputs in self._dynamic.values():
            for output in outputs.values():
                output.close()
        self._dynamic.clear()

    def abandon(self) -> None:
        """Lets go of everything without destroying it, after an error that this would not survive."""
        self.closed = True
        self.graphs.abandon()
        for context in self._contexts.values():
            context.abandon()

    def _key(self, shapes: Shapes) -> tuple[tuple[int, ...] | None, ...]:
        return tuple(map(shapes.get, self._inputs))

    def _make_form(self, shapes: Shapes) -> Form:
        native = self.model.native
        context = self._context(choose_profile(native.profiles, shapes))
        context.set_shapes(shapes)
        inputs = Layout.of(Tensor(port.name, port.dtype, tuple(shapes[port.name])) for port in native.inputs)
        # After a run, 8.6 tells the shape that the data made last, as if it were known beforehand.
        dynamic_before = self._dynamic.get(context.profile, {})
        found = {
            port: None if port.name in dynamic_before else context.output_shape(port.name)
            for port in native.outputs
        }
        outputs = Layout.of(
            Tensor(port.name, port.dtype, shape) for port, shape in found.items() if shape is not None
        )
        dynamic = tuple(port.name for port, shape in found.items() if shape is None)
        if dynamic and context.profile not in self._dynamic:
            self._dynamic[context.profile] = context.allocate_outputs(dynamic)
        form = Form(context, dict(shapes), inputs, outputs, dynamic, (inputs.size, outputs.size))
        form.eager = self._reason or ("dynamic" if dynamic else None)
        if form.eager is None and not self.model.may_capture(shapes):
            form.eager = "off"
        form.hot = form.eager is None and self.model.is_hot(shapes)
        return form

    def _room(self, form: Form) -> tuple[int, int]:
        largest = self.model.largest_like(form.shapes)
        if largest == form.shapes:
            return form.room
        try:
            room = self.form(largest).room
        except (EngineError, Refused):
            return form.room  # what a larger tile lacks is no reason to fail this one
        return max(form.room[0], room[0]), max(form.room[1], room[1])

    def _context(self, profile: int) -> Context:
        context = self._contexts.get(profile)
        if context is None:
            arena = self._device.activations
            with CHANGES:
                context = Context(self.model.native, profile, self._device.stream, private=arena is None)
                if arena is not None:
                    arena.reserve(context.activation_bytes)
                    context.give_memory(arena.address, context.activation_bytes)
                context.select()
            self._contexts[profile] = context
        return context

    def _prepare(self, form: Form) -> None:
        device = self._device
        device.give_memory(form)
        form.context.set_shapes(form.shapes)
        form.context.set_addresses(form.inputs.addresses(device.io.address))
        form.context.set_addresses(form.outputs.addresses(device.outputs_address(form)))

    def _enqueue(self, form: Form, staging: Staging) -> Layout:
        device, stream = self._device, self._device.stream.number
        dynamic = self._dynamic[form.context.profile] if form.dynamic else {}
        for output in dynamic.values():
            output.begin()
        memory.copy_in(device.io.address, staging.inputs.address, form.inputs.size, stream)
        try:
            form.context.enqueue()
        except Refused:
            for output in dynamic.values():
                if output.failure is not None:
                    raise output.failure from None
            raise
        layout = self._lay_out(form, dynamic, staging) if dynamic else form.outputs
        if form.outputs.size:
            memory.copy_out(staging.outputs.address, device.outputs_address(form), form.outputs.size, stream)
        for tensor, offset in layout.places[len(form.outputs.places) :]:
            if tensor.size:
                source = dynamic[tensor.name].address
                memory.copy_out(staging.outputs.address + offset, source, tensor.size, stream)
        return layout

    def _lay_out(self, form: Form, dynamic: dict[str, DynamicOutput], staging: Staging) -> Layout:
        """Lays the outputs of one run out, those of known shapes first and where they always are."""
        dtypes = {port.name: port.dtype for port in self.model.native.outputs}
        tensors = [tensor for tensor, _ in form.outputs.places]
        for name, output in dynamic.items():
            if output.shape is None:
                raise Refused(f"output {name!r} came without a shape")
            tensors.append(Tensor(name, dtypes[name], output.shape))
        layout = Layout.of(tensors)
        self._device.reserve_outputs(staging, layout.size)
        return layout

    def _capture(self, form: Form, staging: Staging, spare: Iterable[Staging]) -> None:
        """Captures a tile that was just queued, also for slots that no tile owns."""
        staging.mark_ran(self._device.stream)
        graph = self._add_graph(form, staging)
        if graph is not None and self._is_slower(form, staging, graph):
            self.graphs.refuse(form, "slower")
        for other in spare:
            try:
                self._device.reserve(form, other)
            except (CudaOutOfMemory, TileFailed):
                return  # the tile itself is under way and needs none of this
            self._add_graph(form, other)

    def _add_graph(self, form: Form, staging: Staging) -> Graph | None:
        def work() -> None:
            try:
                self._enqueue(form, staging)
            except Refused as exc:
                raise CaptureFailed("refused", str(exc)) from exc

        if self.graphs.find(form, staging.index) is not None or not self.graphs.due(form):
            return None
        self._prepare(form)
        if not form.context.settled:
            return None  # memory moved since the run: the next one settles it
        return self.graphs.add(form, staging.index, work)

    def _is_slower(self, form: Form, staging: Staging, graph: Graph) -> bool:
        if form.tried or not self._trials:
            return False
        form.tried = True
        stream = self._device.stream
        return replay_is_slower(
            partial(graph.launch, stream),
            partial(self._enqueue, form, staging),
            stream.synchronize,
            self._trials,
        )
