"""Entry: one model's folder, with its settings and its source file found."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from tensorq_engines.base.errors import RepositoryError
from tensorq_engines.base.problem import Problem
from tensorq_engines.base.profile import Profile
from tensorq_engines.base.wire import Wire
from tensorq_engines.repository.settings import ModelSettings
from tensorq_engines.repository.settings_file import read_settings

SETTINGS_FILE = "model.toml"
DEFAULT_SOURCES = ("model.onnx", "model.plan")


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """A model in a repository.

    Attributes:
        name: the model's name, which is the folder's.
        folder: the folder, with symlinks resolved.
        settings: what model.toml says, or the defaults where there is none.
        source: the model file, which exists and lies inside ``folder``.
    """

    name: str
    folder: Path
    settings: ModelSettings
    source: Path

    @property
    def profiles(self) -> tuple[Profile, ...]:
        """The profiles of model.toml."""
        return self.settings.profiles

    @property
    def wires(self) -> tuple[Wire, ...]:
        """The wire inputs of model.toml."""
        return self.settings.wires


def read_entry(folder: Path) -> ModelEntry:
    """Reads the folder of one model; the model file itself is not opened.

    Raises:
        RepositoryError: the settings or the source are wrong.
    """
    settings = read_settings(folder / SETTINGS_FILE) if has_settings(folder) else ModelSettings()
    return ModelEntry(folder.name, folder.resolve(), settings, find_source(folder, settings))


def has_settings(folder: Path) -> bool:
    """Tells whether there is a model.toml, be it readable or not."""
    return os.path.lexists(folder / SETTINGS_FILE)


def may_enter(folder: Path) -> bool:
    """Tells whether this process may look at the files in a folder."""
    try:
        os.stat(f"{folder}/.")
    except OSError as exc:
        return not isinstance(exc, PermissionError)
    return True


def find_source(folder: Path, settings: ModelSettings) -> Path:
    """Returns the model file that the settings name, or else the default one that is there.

    Raises:
        RepositoryError: there is none, or it lies outside the folder.
    """
    root = folder.resolve()
    names = DEFAULT_SOURCES if settings.source is None else (settings.source,)
    if settings.source is not None:
        _expect_inside(folder, settings.source)
    for name in names:
        path = folder / name
        # Unlike Path.is_file, this is False for a name that the system refuses.
        if os.path.isfile(path):
            if not path.resolve().is_relative_to(root):
                message = f"{name!r} is a link to {path.resolve()}, outside the model's folder"
                raise _source_error(folder, message, "copy the file into the folder")
            return root / name
    if not may_enter(folder):
        problem = Problem(
            str(folder), "", "cannot be read: Permission denied", "let the worker's user read it"
        )
        raise RepositoryError([problem])
    message = f"there is no file {' or '.join(map(repr, names))} in {folder}"
    raise _source_error(folder, message, "put the model there, or name its file as source")


def _expect_inside(folder: Path, source: str) -> None:
    path = Path(source)
    if path.is_absolute() or ".." in path.parts or "\0" in source:
        message = f"got {source!r}, expected a path inside the model's folder"
        raise _source_error(folder, message, "put the file into the folder and give its name")


def _source_error(folder: Path, message: str, remedy: str) -> RepositoryError:
    return RepositoryError([Problem(str(folder / SETTINGS_FILE), "source", message, remedy)])
