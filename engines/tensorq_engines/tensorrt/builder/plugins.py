"""Plugins: libraries of operators that TensorRT does not bring."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from tensorq_engines.base.digest import file_digest
from tensorq_engines.base.errors import BuildFailed
from tensorq_engines.tensorrt.flavour import Flavour

if TYPE_CHECKING:
    from tensorq_engines.repository.entry import ModelEntry


def plugin_paths(entry: ModelEntry) -> tuple[Path, ...]:
    """Returns the libraries that model.toml names.

    Raises:
        BuildFailed: one is not there, or lies outside the model's folder.
    """
    paths = []
    for name in entry.settings.tensorrt.plugins:
        path = (entry.folder / name).resolve()
        if not path.is_relative_to(entry.folder) or not path.is_file():
            raise BuildFailed(
                f"model {entry.name!r}: tensorrt.plugins in model.toml names {name!r}, expected a library in "
                f"{entry.folder}; put it there"
            )
        paths.append(path)
    return tuple(paths)


def plugin_digests(entry: ModelEntry) -> tuple[str, ...]:
    """Returns the sha256 of each library, in order.

    Raises:
        BuildFailed: one is not there.
    """
    return tuple(map(file_digest, plugin_paths(entry)))


def load_plugins(flavour: Flavour, entry: ModelEntry) -> None:
    """Makes TensorRT's own plugins and the model's known, each library once in a process.

    A plan that was built with plugins needs them before it is deserialized too. They are programs: they
    run with the worker's rights.

    Raises:
        BuildFailed: a library is not there or cannot be loaded.
    """
    _load_own(flavour)
    for path in plugin_paths(entry):
        with flavour.log.listen() as heard:
            try:
                loaded = _load(flavour, str(path)) is not None
            except RuntimeError as exc:
                heard.add(str(exc))
                loaded = False
        if not loaded:
            raise BuildFailed(
                f"model {entry.name!r}: {path} cannot be loaded as a plugin library: {heard}; "
                f"build it for {flavour.name} {flavour.version_text}"
            )


@cache
def _load_own(flavour: Flavour) -> None:
    if hasattr(flavour.module, "init_libnvinfer_plugins"):
        flavour.module.init_libnvinfer_plugins(flavour.log.native, "")


@cache
def _load(flavour: Flavour, path: str) -> object:
    return flavour.module.get_plugin_registry().load_library(path)
