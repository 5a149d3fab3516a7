"""Which files make which jobs, and the arrays in them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from glob import glob
from pathlib import Path

import click
import numpy as np

from tensorq.errors import InputError

_NPY, _ZIP = b"\x93NUMPY", b"PK"


@dataclass(frozen=True, slots=True)
class JobFiles:
    """The files of one job.

    Attributes:
        name: names its result's file; empty where another job's files have the same name.
        files: input and .npy file; without an input, an .npz file whose arrays are named as the inputs.
    """

    name: str
    files: tuple[tuple[str, Path], ...]

    def load(self) -> dict[str, np.ndarray]:
        """Reads the arrays; nothing is unpickled.

        Raises:
            InputError: a file cannot be read, or holds no arrays of numbers.
        """
        arrays: dict[str, np.ndarray] = {}
        for name, path in self.files:
            arrays |= _read_archive(path) if not name else {name: _read_array(path)}
        return arrays

    def __str__(self) -> str:
        return ", ".join(str(path) for _, path in self.files)


def find_jobs(arguments: Sequence[str], only_input: Callable[[], str]) -> list[JobFiles]:
    """Finds the files of jobs.

    Args:
        arguments: ``NAME=FILE`` and ``NAME=GLOB``, or files and globs alone.
        only_input: names the input for an .npy file that stands alone.

    Raises:
        click.UsageError: they make no jobs; the message says why.
    """
    pairs = [(name, file) for name, file in map(_split, arguments) if name]
    if pairs and len(pairs) < len(arguments):
        raise click.UsageError("give every file as NAME=FILE, or none: an .npz file names its arrays itself")
    jobs = _of_pairs(pairs) if pairs else _of_files(arguments, only_input)
    times = Counter(job.name for job in jobs)
    return [replace(job, name="") if times[job.name] > 1 else job for job in jobs]


def _split(argument: str) -> tuple[str, str]:
    name, equals, file = argument.partition("=")
    return (name, file) if equals and not Path(argument).exists() else ("", argument)


def _of_files(arguments: Sequence[str], only_input: Callable[[], str]) -> list[JobFiles]:
    paths = [path for argument in arguments for path in _expand(argument)[0]]
    name = only_input() if any(path.suffix != ".npz" for path in paths) else ""
    return [JobFiles(path.stem, (("" if path.suffix == ".npz" else name, path),)) for path in paths]


def _of_pairs(pairs: Sequence[tuple[str, str]]) -> list[JobFiles]:
    found: dict[str, list[Path]] = {}
    many: set[str] = set()
    for name, file in pairs:
        paths, matched = _expand(file)
        if matched or name in found:
            many.add(name)
        found.setdefault(name, []).extend(paths)
    if not many:
        files = tuple((name, paths[0]) for name, paths in found.items())
        return [JobFiles(files[0][1].stem, files)]
    if len(many) == 1:
        (name,) = many
        return [_job(path.stem, {name: path}, found) for path in found[name]]
    stems = {name: {path.stem: path for path in found[name]} for name in found if name in many}
    return [
        _job(stem, {name: _same(stem, paths, name) for name, paths in stems.items()}, found)
        for stem in sorted(set().union(*stems.values()))
    ]


def _job(stem: str, own: dict[str, Path], found: dict[str, list[Path]]) -> JobFiles:
    """A job with files of its own; inputs of one file share it among all jobs."""
    return JobFiles(stem, tuple((name, own.get(name, paths[0])) for name, paths in found.items()))


def _same(stem: str, paths: dict[str, Path], name: str) -> Path:
    if stem not in paths:
        raise click.UsageError(f"input {name!r} has no file {stem!r}: files of several inputs go by name")
    return paths[stem]


def _expand(file: str) -> tuple[list[Path], bool]:
    """The files that are meant, and whether that was by a pattern."""
    path = Path(file)
    if path.is_file():
        return [path], False
    if not any(char in file for char in "*?["):
        raise click.UsageError(f"{file!r}: no such file")
    paths = [path for path in map(Path, sorted(glob(file, recursive=True))) if path.is_file()]
    if not paths:
        raise click.UsageError(f"{file!r}: no file matches")
    return paths, True


def _read_array(path: Path) -> np.ndarray:
    if _start(path).startswith(_ZIP):
        raise InputError(f"{path}: is an .npz file; give it without NAME=, its arrays have their own names")
    loaded = _load(path)
    assert isinstance(loaded, np.ndarray)
    return loaded


def _read_archive(path: Path) -> dict[str, np.ndarray]:
    if _start(path).startswith(_NPY):
        raise InputError(f"{path}: is an .npy file; call it so, or give it as NAME=FILE")
    loaded = _load(path)
    assert isinstance(loaded, dict)
    return loaded


def _load(path: Path) -> np.ndarray | dict[str, np.ndarray]:
    if not _start(path).startswith((_NPY, _ZIP)):
        raise InputError(f"{path}: is neither an .npy nor an .npz file; write one with numpy.save or savez")
    try:
        loaded = np.load(path, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return loaded
        with loaded:
            arrays = {name: loaded[name] for name in loaded.files}
    except Exception as exc:
        # numpy and zipfile raise whatever a broken file provokes.
        raise InputError(f"{path}: cannot be read as arrays: {exc}; write it again") from exc
    if strange := [name for name, array in arrays.items() if not isinstance(array, np.ndarray)]:
        raise InputError(f"{path}: {strange[0]!r} in it is no array; write the file with numpy.savez")
    return arrays


def _start(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(len(_NPY))
    except OSError as exc:
        raise InputError(f"{path}: cannot be read: {exc.strerror}") from exc
