"""Build: a plan is found, or built and kept."""

from __future__ import annotations

import hashlib
import logging
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tensorq_engines.base.errors import BuildFailed
from tensorq_engines.tensorrt.builder.cache import cache_folders, find_plan, store_plan, writable_folder
from tensorq_engines.tensorrt.builder.config import configure
from tensorq_engines.tensorrt.builder.lock import build_lock
from tensorq_engines.tensorrt.builder.measure import BuildWords, estimate, measure
from tensorq_engines.tensorrt.builder.network import parse
from tensorq_engines.tensorrt.builder.order import Order, place_order
from tensorq_engines.tensorrt.builder.plugins import load_plugins
from tensorq_engines.tensorrt.builder.progress import Progress, progress_monitor, reporting
from tensorq_engines.tensorrt.builder.rewrite.graph import write_graph
from tensorq_engines.tensorrt.builder.timing import load_timings, save_timings, timing_path
from tensorq_engines.tensorrt.cuda.device import Device
from tensorq_engines.tensorrt.flavour import Flavour
from tensorq_engines.tensorrt.plan import PlanFile
from tensorq_engines.tensorrt.sidecar import Sidecar

if TYPE_CHECKING:
    from tensorq_engines.repository.entry import ModelEntry

logger = logging.getLogger(__name__)


def find(entry: ModelEntry, flavour: Flavour, device: Device | None) -> PlanFile | None:
    """Returns the plan of a model as it is now, or None where it must be built.

    Raises:
        ModelLoadFailed: see `find_or_build`.
    """
    return find_plan(cache_folders(entry.folder), place_order(entry, flavour, device).recipe)


def find_or_build(
    entry: ModelEntry, flavour: Flavour, device: Device | None, *, force: bool = False
) -> PlanFile:
    """Returns the plan of a model as it is now, built first where there is none; that can take minutes.

    Of all processes that want one plan at once, one builds it and the others wait.

    Args:
        entry: the model.
        flavour: the TensorRT to build with.
        device: the GPU that the plan is for; None where there is none, which only TensorRT-RTX builds for.
        force: build even if there is a plan.

    Raises:
        ModelLoadFailed: the model file cannot be used, or does not fit model.toml.
        BuildFailed: TensorRT cannot build it, or the plan can be written nowhere; the message has
            TensorRT's own words.
    """
    order = place_order(entry, flavour, device)
    folders = cache_folders(entry.folder)
    if not force and (plan := find_plan(folders, order.recipe)):
        return plan
    if device is None and flavour.name == "tensorrt":
        raise BuildFailed(
            f"model {entry.name!r}: TensorRT builds plans on the GPU that they are for, and there is none; "
            "build on a GPU host, install tensorrt-rtx-cu13, or choose engine 'onnxruntime' in model.toml"
        )
    folder = writable_folder(entry.name, folders)
    what = f"model {entry.name!r}"
    try:
        with build_lock(folder / f"{order.recipe.file_name}.lock", what):
            if not force and (plan := find_plan(folders, order.recipe, warn=True)):
                return plan
            return _build(order, folder, what)
    except OSError as exc:
        raise BuildFailed(
            f"{what}: its plan cannot be written to {exc.filename or folder}: {exc.strerror or exc}; "
            "make room there"
        ) from exc


def _build(order: Order, folder: Path, what: str) -> PlanFile:
    recipe, flavour = order.recipe, order.flavour
    began = time.perf_counter()
    logger.info("%s: building %s", what, folder / recipe.file_name)
    if order.device is not None:
        order.device.use()
    load_plugins(flavour, order.entry)
    with tempfile.TemporaryDirectory(prefix="tensorq-build-") as scratch:
        path, model = write_graph(order.entry, order.means, recipe.profiles, Path(scratch))
        words = BuildWords()
        plan = _serialize(order, path, model, timing_path(folder, recipe), words)
    needs = measure(flavour, plan, recipe, order.entry.name) if order.device is not None else None
    if needs is None:
        needs = estimate(model, order.signature, recipe, words, len(plan))
    sidecar = Sidecar(
        name=order.entry.name,
        signature=order.signature,
        profiles=recipe.profiles,
        activation_bytes=needs.activation_bytes,
        weights_bytes=needs.weights_bytes,
        io_bytes=needs.io_bytes,
        context_bytes=needs.context_bytes,
        flavour=recipe.flavour,
        version_text=recipe.flavour_version,
        compute_capability=recipe.compute_capability,
        device_name=recipe.device_name,
        precision=recipe.precision,
        recipe=recipe.key,
        sha256=hashlib.sha256(plan).hexdigest(),
    )
    stored = store_plan(folder, recipe, plan, sidecar)
    logger.info("%s: built in %.1f s, %d bytes", what, time.perf_counter() - began, len(plan))
    return stored


def _serialize(order: Order, path: Path, model: Any, timings: Path, words: BuildWords) -> bytes:
    flavour, name = order.flavour, order.entry.name
    with flavour.log.listen(words):
        builder = flavour.module.Builder(flavour.log.native)
        network, parser = parse(flavour, builder, path, model, name)
        config = configure(flavour, builder, order.recipe, name)
        # Without a GPU nothing is measured, and TensorRT cannot even read what was.
        if order.device is not None:
            load_timings(config, timings)
        progress = Progress()
        if monitor := progress_monitor(flavour.module, progress):
            config.progress_monitor = monitor
        with reporting(f"model {name!r}", progress):
            plan = builder.build_serialized_network(network, config)
        del parser
        if plan is None:
            raise BuildFailed(
                f"model {name!r}: {flavour.name} {flavour.version_text} cannot build it: {words}; "
                "correct the model or its profiles, or choose engine 'onnxruntime' in model.toml"
            )
    if order.device is not None:
        save_timings(config, timings, f"model {name!r}")
    return bytes(plan)
