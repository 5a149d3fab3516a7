"""Results: written to files, and an account of what failed."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Mapping
from pathlib import Path

import click
import numpy as np

from tensorq import Job
from tensorq.errors import JobError, WireError
from tensorq_worker.cli.command import EX_FAILED
from tensorq_worker.errors import one_line


class Results:
    """The results of one command.

    Attributes:
        written: files written so far.
        failures: what failed so far, a line each.
    """

    def __init__(self, folder: Path) -> None:
        """Keeps the name; the folder is made for the first result.

        Args:
            folder: where results go.
        """
        self._folder = folder
        self._last = folder
        self.written = 0
        self.failures: list[str] = []

    def take(self, job: Job, name: str, source: str = "") -> None:
        """Writes the result of a job that has ended, or notes why it has none.

        Args:
            job: the job.
            name: of the file, without suffix; empty to take the job's id.
            source: what the job was made of, for messages.
        """
        try:
            outputs = job.result(timeout=0)
        except (JobError, WireError) as exc:
            self.fail(exc, source)
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        self._last = result_path(self._folder, name or job.id)
        write(self._last, outputs)
        self.written += 1

    def fail(self, words: object, source: str = "") -> None:
        """Notes a failure."""
        self.failures.append(one_line(f"{source}: {words}" if source else words))

    def report(self) -> int:
        """Says what became of the jobs, and returns the exit code."""
        for failure in self.failures:
            click.echo(failure, err=True)
        if self.written + len(self.failures) > 1:
            click.echo(f"{self.written} results in {self._folder}, {len(self.failures)} failed", err=True)
        elif self.written:
            click.echo(self._last)
        return EX_FAILED if self.failures else os.EX_OK


def result_path(folder: Path, name: str) -> Path:
    """Returns where the result of that name goes."""
    return folder / f"{name}.npz"


def write(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Writes an .npz file in one step: nobody sees half of one.

    numpy.savez would do, but for outputs that are called as its own arguments are, such as ``file``.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with zipfile.ZipFile(draft, "w") as archive:
            for name, array in arrays.items():
                with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                    np.lib.format.write_array(file, array, allow_pickle=False)
        draft.replace(path)
    except OSError as exc:
        # A full disk names no file.
        raise OSError(exc.errno, exc.strerror, str(path)) from exc
    finally:
        draft.unlink(missing_ok=True)
