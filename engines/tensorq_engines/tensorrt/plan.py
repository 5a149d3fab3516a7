"""Plan: a file that TensorRT deserializes, with its sidecar where there is one."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tensorq_engines.base.errors import ModelLoadFailed
from tensorq_engines.tensorrt.sidecar import Sidecar, sidecar_path

CACHE = ".tensorq"
"""The folder in a model's folder where what is made of it is kept."""

# Digests found right, by path with time of change and size: a reload need not hash the same bytes again.
_checked: dict[tuple[Path, int, int], str] = {}


@dataclass(frozen=True, slots=True)
class PlanFile:
    """A plan on disk.

    Attributes:
        path: the plan.
        sidecar: its description; None for a plan that came without one.
    """

    path: Path
    sidecar: Sidecar | None

    @classmethod
    def find(cls, path: Path) -> Self:
        """Returns the plan at ``path`` with the sidecar beside it, if there is one; the plan is not read.

        Raises:
            ModelLoadFailed: there is a sidecar and it cannot be used.
        """
        beside = sidecar_path(path)
        return cls(path, Sidecar.read(beside) if beside.exists() else None)

    def read(self) -> bytes:
        """Returns the plan, checked against the sidecar's digest where there is a sidecar.

        The digest tells a damaged or mixed-up file. It does not tell who wrote it: a plan is executable
        code, so take plans only from where you would take a program.

        Raises:
            ModelLoadFailed: the file cannot be read, is empty, or is not the one that the sidecar describes.
        """
        try:
            stat = self.path.stat()
            data = self.path.read_bytes()
        except OSError as exc:
            raise ModelLoadFailed(
                f"{self.path} cannot be read: {exc.strerror or exc}; put the plan there or build it anew"
            ) from exc
        if not data:
            raise ModelLoadFailed(f"{self.path} is empty, expected a TensorRT plan; build it anew")
        state = self.path, stat.st_mtime_ns, len(data)
        if self.sidecar is not None and _checked.get(state) != self.sidecar.sha256:
            digest = hashlib.sha256(data).hexdigest()
            if digest != self.sidecar.sha256:
                raise ModelLoadFailed(
                    f"{self.path} has sha256 {digest}, expected {self.sidecar.sha256} by "
                    f"{sidecar_path(self.path).name}: it is damaged, or of another build; build the plan anew"
                )
            _checked[state] = digest
        return data
