"""Order: one model to build, with everything looked up that its plan depends on."""

from __future__ import annotations

import platform
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tensorq.signature import Signature
from tensorq_engines.tensorrt.builder.calibration.result import read_calibration
from tensorq_engines.tensorrt.builder.plugins import plugin_digests
from tensorq_engines.tensorrt.builder.precision import PrecisionMeans, choose_means
from tensorq_engines.tensorrt.builder.profiles import choose_profiles
from tensorq_engines.tensorrt.builder.recipe import BuildOptions, Recipe
from tensorq_engines.tensorrt.builder.rewrite.graph import describe_rewrites
from tensorq_engines.tensorrt.builder.source import Source, read_source
from tensorq_engines.tensorrt.cuda.device import Device
from tensorq_engines.tensorrt.flavour import Flavour

if TYPE_CHECKING:
    from tensorq_engines.repository.entry import ModelEntry


@dataclass(frozen=True, slots=True)
class Order:
    """What to build, from what, with what.

    Attributes:
        entry: the model.
        flavour: the TensorRT to build with.
        device: the GPU to build on; None where there is none.
        signature: the model's, as jobs see it.
        means: how its precision is made.
        recipe: all that its plan depends on.
    """

    entry: ModelEntry
    flavour: Flavour
    device: Device | None
    signature: Signature
    means: PrecisionMeans
    recipe: Recipe


@dataclass(frozen=True, slots=True)
class Target:
    """What a plan is built with and for.

    Attributes:
        flavour: ``tensorrt`` or ``tensorrt_rtx``.
        version_text: its full version.
        compute_capability: the GPU's; empty where there is none.
        device_name: the GPU's; empty where there is none.
    """

    flavour: str
    version_text: str
    compute_capability: str
    device_name: str


def place_order(entry: ModelEntry, flavour: Flavour, device: Device | None) -> Order:
    """Reads a model's files and settings; nothing is built.

    Raises:
        ModelLoadFailed: the model file cannot be used, or does not fit model.toml.
        BuildFailed: this TensorRT cannot build what model.toml asks for.
    """
    flags = set(flavour.module.BuilderFlag.__members__)
    means = choose_means(entry.name, entry.settings.precision, flags, flavour.version_text)
    source = read_source(entry)
    target = Target(
        flavour.name,
        flavour.version_text,
        "" if device is None else device.compute_capability,
        "" if device is None else device.name,
    )
    recipe = write_recipe(entry, source, means, target)
    return Order(entry, flavour, device, source.header.signature, means, recipe)


def write_recipe(entry: ModelEntry, source: Source, means: PrecisionMeans, target: Target) -> Recipe:
    """Returns all that the plan of a model depends on; TensorRT itself is not needed.

    Args:
        entry: the model.
        source: its file, as it is now.
        means: how its precision is made with the target's TensorRT.
        target: what the plan is built with and for.

    Raises:
        BuildFailed: the model has no plan that model.toml describes.
    """
    settings = entry.settings
    signature = source.header.signature
    return Recipe(
        model=source.digest,
        batch_axis=repr(settings.batch_axis),
        rewrites=describe_rewrites(entry, means),
        calibration=read_calibration(entry, source.digest).sha256 if means.calibrated else "",
        precision=settings.precision,
        flags=means.flags,
        profiles=choose_profiles(entry.name, signature, entry.profiles, settings.tensorrt.profiles),
        options=BuildOptions(
            optimization_level=settings.tensorrt.optimization_level,
            workspace_mib=settings.tensorrt.workspace_mib,
            tf32=settings.tensorrt.tf32,
            detailed_layers=settings.tensorrt.detailed_layers,
        ),
        plugins=plugin_digests(entry),
        os=platform.system().lower(),
        arch=platform.machine(),
        flavour=target.flavour,
        flavour_version=target.version_text,
        compute_capability=target.compute_capability,
        device_name=target.device_name,
    )
