"""Everything that is wrong with one model's folder."""

from __future__ import annotations

import os
from pathlib import Path

from tensorq.errors import UnknownModel
from tensorq.names import validate_model_name
from tensorq_engines.base.buckets_check import check_buckets
from tensorq_engines.base.errors import RepositoryError
from tensorq_engines.base.problem import Problem
from tensorq_engines.base.profile_check import check_order
from tensorq_engines.onnx_model.header import Header, read_header
from tensorq_engines.repository.entry import (
    DEFAULT_SOURCES,
    SETTINGS_FILE,
    find_source,
    has_settings,
    may_enter,
)
from tensorq_engines.repository.settings import ModelSettings
from tensorq_engines.repository.settings_file import examine_settings

PLAN_SUFFIXES = (".plan", ".engine")


def check_folder(folder: Path) -> list[Problem]:
    """Returns all that is wrong with a folder that should be a model."""
    problems = check_name(folder)
    settings = ModelSettings()
    file = str(folder / SETTINGS_FILE)
    if has_settings(folder):
        settings, found = examine_settings(folder / SETTINGS_FILE)
        problems += found
    try:
        source = find_source(folder, settings)
    except RepositoryError as exc:
        # Where the settings are wrong, the source that is missing may be one that they name.
        lost = settings.source is None and problems
        return problems + ([] if lost else exc.problems) + check_order(settings.profiles, file)
    return problems + _check_source(source, settings, file)


def check_name(folder: Path) -> list[Problem]:
    """Returns the problem of a folder whose name is not a model name."""
    try:
        validate_model_name(folder.name)
    except UnknownModel as exc:
        return [Problem(str(folder), "", str(exc), "rename the folder")]
    return []


def is_model(folder: Path) -> bool:
    """Tells whether a folder holds any of the files that make it a model, or may not be looked into."""
    files = (SETTINGS_FILE, *DEFAULT_SOURCES)
    return not may_enter(folder) or any(os.path.exists(folder / name) for name in files)


def _check_source(source: Path, settings: ModelSettings, file: str) -> list[Problem]:
    if source.suffix == ".onnx":
        try:
            header = read_header(source, settings.profiles, settings.batch_axis, file, settings.wires)
        except RepositoryError as exc:
            return exc.problems
        buckets = check_buckets(settings.bucketed, header.signature, settings.profiles, file)
        return _check_graphs(settings, header, file) + buckets
    return _check_suffix(source, settings, file) + check_order(settings.profiles, file)


def _check_suffix(source: Path, settings: ModelSettings, file: str) -> list[Problem]:
    if source.suffix not in PLAN_SUFFIXES:
        message = f"got {source.name!r}, expected a file that ends in .onnx or {' or '.join(PLAN_SUFFIXES)}"
        return [Problem(file, "source", message, "export the model to ONNX")]
    if settings.engine not in ("auto", "tensorrt"):
        message = f"got {settings.engine!r}, but {source.name} is a TensorRT plan"
        return [Problem(file, "engine", message, "write 'tensorrt', or name an ONNX file as source")]
    if settings.inputs:
        remedy = "remove the tables, or name an ONNX file as source"
        return [Problem(file, "inputs", f"{source.name} is a plan, whose inputs are what they are", remedy)]
    return []


def _check_graphs(settings: ModelSettings, header: Header, file: str) -> list[Problem]:
    sizes = settings.graphs.sizes
    if isinstance(sizes, str) or set(sizes) <= set(header.ladder):
        return []
    message = f"got {list(sizes)}, but the model's ladder is {list(header.ladder)}"
    return [Problem(file, "graphs.sizes", message, "name sizes of the ladder, or add them to a [[profile]]")]
