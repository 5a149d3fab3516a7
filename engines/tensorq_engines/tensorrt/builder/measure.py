"""Measure: what a plan needs, for its sidecar; from the plan where there is a GPU, else from the build."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from tensorq.signature import Signature
from tensorq_engines.base.errors import ModelLoadFailed
from tensorq_engines.sizing.estimate import Build, Tile, estimate_tile
from tensorq_engines.sizing.maxima import largest
from tensorq_engines.tensorrt.builder.recipe import Recipe
from tensorq_engines.tensorrt.context import Refused
from tensorq_engines.tensorrt.cuda.errors import CudaError
from tensorq_engines.tensorrt.cuda.memory import free_and_total
from tensorq_engines.tensorrt.description import measure_profile
from tensorq_engines.tensorrt.flavour import Flavour
from tensorq_engines.tensorrt.log import Heard
from tensorq_engines.tensorrt.native import NativeEngine, naming
from tensorq_engines.tensorrt.process import CHANGES

_SAID = re.compile(r"Total (Activation|Weights) Memory: (\d+)")


@dataclass(frozen=True, slots=True)
class Needs:
    """Device memory of a plan, in bytes; see `Sidecar`."""

    weights_bytes: int
    activation_bytes: tuple[int, ...]
    io_bytes: tuple[int, ...]
    context_bytes: tuple[int, ...]


class BuildWords(Heard):
    """What TensorRT says while it builds, with the sizes that it tells by the way."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: dict[str, list[int]] = {"Activation": [], "Weights": []}

    def note(self, message: str) -> None:
        """Keeps the sizes of a message."""
        for kind, size in _SAID.findall(message):
            self.sizes[kind].append(int(size))


def estimate(model: Any, signature: Signature, recipe: Recipe, words: BuildWords, plan_bytes: int) -> Needs:
    """Returns what a plan needs as far as the build told, the rest as an estimate from the graph.

    Args:
        model: the graph that was built, an ``onnx.ModelProto``.
        signature: the model's.
        recipe: what was built.
        words: what TensorRT said meanwhile.
        plan_bytes: the plan's size.
    """
    build = Build(recipe.precision, recipe.options.optimization_level)
    try:
        graph = [estimate_tile(model, signature, largest(signature, item), build) for item in recipe.profiles]
    except ModelLoadFailed:  # an estimate: a model that onnx cannot infer over still runs
        graph = [Tile(0, 0)] * len(recipe.profiles)
    told = words.sizes["Activation"]
    weights = words.sizes["Weights"]
    return Needs(
        weights_bytes=weights[-1] if weights else plan_bytes,
        activation_bytes=tuple(told if len(told) == len(graph) else [tile.arena_bytes for tile in graph]),
        io_bytes=tuple(tile.io_bytes for tile in graph),
        context_bytes=(0,) * len(graph),
    )


def measure(flavour: Flavour, plan: bytes, recipe: Recipe, name: str) -> Needs | None:
    """Returns what a plan needs, deserialized on the GPU at hand; None where it cannot run there now.

    Args:
        flavour: what built it.
        plan: its bytes.
        recipe: what was built.
        name: the model's name, for messages.

    Raises:
        ModelLoadFailed: it has tensors that jobs cannot carry.
    """
    with CHANGES:
        runtime = flavour.runtime()
        free_before, _ = free_and_total()
        handle = runtime.deserialize_cuda_engine(plan)
        if handle is None:
            return None
        taken = free_before - free_and_total()[0]
        with naming(f"model {name!r}"):
            engine = NativeEngine(flavour, handle)
        try:
            profiles = range(len(recipe.profiles))
            sizes = [measure_profile(engine, index) for index in profiles]
            return Needs(
                # Other threads' memory comes and goes meanwhile, and small engines fit into what is there.
                weights_bytes=taken if taken > 0 else len(plan),
                activation_bytes=tuple(engine.activation_bytes(index) for index in profiles),
                io_bytes=tuple(one.io_bytes for one in sizes),
                context_bytes=tuple(one.context_bytes for one in sizes),
            )
        except (Refused, CudaError):
            # Other models may fill the GPU by now: no reason to lose a build of minutes.
            return None
        finally:
            engine.close()
