"""Built: the plans that a model has, looked up without TensorRT and without a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tensorq_engines.base.errors import ModelLoadFailed
from tensorq_engines.tensorrt.builder.cache import cache_folders, find_plan
from tensorq_engines.tensorrt.builder.order import Target, write_recipe
from tensorq_engines.tensorrt.builder.precision import PrecisionMeans, choose_means
from tensorq_engines.tensorrt.builder.source import Source
from tensorq_engines.tensorrt.plan import PlanFile
from tensorq_engines.tensorrt.sidecar import Sidecar

if TYPE_CHECKING:
    from tensorq_engines.repository.entry import ModelEntry


def find_built(entry: ModelEntry, source: Source) -> PlanFile | None:
    """Returns the newest plan that was built from a model as it is now, for whatever GPU; None without one.

    What a sidecar tells of its TensorRT and its GPU gives the recipe that such a plan would have today. A
    plan of an older model, or of other settings, has another.

    Args:
        entry: the model.
        source: its ONNX file.
    """
    paths = [path for folder in cache_folders(entry.folder) for path in _sidecars(folder)]
    for path in sorted(paths, key=lambda path: path.stat().st_mtime_ns, reverse=True):
        try:
            sidecar = Sidecar.read(path)
        except ModelLoadFailed:
            continue
        target = Target(
            sidecar.flavour, sidecar.version_text, sidecar.compute_capability, sidecar.device_name
        )
        for means in _means(entry, target):
            try:
                recipe = write_recipe(entry, source, means, target)
            except ModelLoadFailed:
                continue
            if plan := find_plan([path.parent], recipe):
                return plan
    return None


def _sidecars(folder: Path) -> list[Path]:
    try:
        return list(folder.glob("*.plan.json"))
    except OSError:
        return []


def _means(entry: ModelEntry, target: Target) -> Iterator[PrecisionMeans]:
    # The flags that a TensorRT has are known to that TensorRT alone; there are only these two ways.
    for flags in ({"FP16", "BF16"}, set[str]()):
        yield choose_means(entry.name, entry.settings.precision, flags, target.version_text)
