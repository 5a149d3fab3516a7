"""Plan: a file that TensorRT deserializes, with its sidecar where there is one."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tensorq_engines.base.errors import ModelLoadFailed
from tensorq_engines.tensorrt.sidecar import Sidecar, sidecar_path


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
            data = self.path.read_bytes()
        except OSError as exc:
            raise ModelLoadFailed(
                f"{self.path} cannot be read: {exc.strerror or exc}; put the plan there or build it anew"
            ) from exc
        if not data:
            raise ModelLoadFailed(f"{self.path} is empty, expected a TensorRT plan; build it anew")
        if self.sidecar is not None:
            digest = hashlib.sha256(data).hexdigest()
            if digest != self.sidecar.sha256:
                raise ModelLoadFailed(
                    f"{self.path} has sha256 {digest}, expected {self.sidecar.sha256} by "
                    f"{sidecar_path(self.path).name}: it is damaged, or of another build; build the plan anew"
                )
        return data
