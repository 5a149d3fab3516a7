"""Sidecar: what a plan is, in a small JSON file beside it, readable without a GPU."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Self

from tensorq.signature import Signature
from tensorq_engines.base.errors import ModelLoadFailed
from tensorq_engines.base.profile import InputRange, Profile

SIDECAR_VERSION = 1

_BY_PROFILE = ("activation_bytes", "io_bytes", "context_bytes")


def sidecar_path(plan: Path) -> Path:
    """Returns where the sidecar of a plan is: ``model.plan`` has ``model.plan.json``."""
    return plan.with_name(f"{plan.name}.json")


@dataclass(frozen=True, slots=True)
class Sidecar:
    """A plan's description, written by whoever built it.

    Attributes:
        name: the model's name when the plan was built.
        signature: inputs and outputs as jobs send them.
        profiles: the plan's optimization profiles, in its order; at least one, with no ranges where all
            shapes are fixed.
        activation_bytes: device memory of a context, one number a profile.
        weights_bytes: device memory of the deserialized engine.
        io_bytes: inputs and outputs at the maximum, one number a profile.
        context_bytes: device memory that a context keeps for itself, one number a profile.
        flavour: ``tensorrt`` or ``tensorrt_rtx``.
        version_text: the full version of TensorRT that built the plan.
        compute_capability: such as ``9.0``; empty for a plan that is not bound to one.
        device_name: the GPU that the plan was built on; empty where none was.
        precision: what model.toml asked for.
        recipe: hex key of all that went into the plan.
        sha256: hex digest of the plan. It tells damage, not who wrote the plan: plans are executable code,
            and whoever can write a plan can write its sidecar.
        version: of this format.
    """

    name: str
    signature: Signature
    profiles: tuple[Profile, ...]
    activation_bytes: tuple[int, ...]
    weights_bytes: int
    io_bytes: tuple[int, ...]
    context_bytes: tuple[int, ...]
    flavour: str
    version_text: str
    compute_capability: str
    device_name: str
    precision: str
    recipe: str
    sha256: str
    version: int = SIDECAR_VERSION

    def __post_init__(self) -> None:
        counts = {name: len(getattr(self, name)) for name in ("profiles", *_BY_PROFILE)}
        if len(set(counts.values())) > 1 or 0 in counts.values():
            raise ValueError(
                f"got {', '.join(f'{count} {name}' for name, count in counts.items())}, "
                "expected the same number of each, at least one"
            )

    def to_json(self) -> str:
        """Returns the file's text; the same sidecar gives the same text."""
        data = {item.name: getattr(self, item.name) for item in fields(self)}
        data["signature"] = self.signature.to_dict()
        data["profiles"] = [[asdict(item) for item in profile] for profile in self.profiles]
        return json.dumps(data, indent=1, sort_keys=True) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The inverse of `to_json`.

        Raises:
            ValueError: the text is not a sidecar of this version; the message says what came.
        """
        data = json.loads(text)
        if not isinstance(data, dict):
            raise ValueError(f"got a {type(data).__name__}, expected an object")
        if data.get("version") != SIDECAR_VERSION:
            raise ValueError(f"got version {data.get('version')!r}, expected {SIDECAR_VERSION}")
        names = {item.name for item in fields(cls)}
        if set(data) != names:
            raise ValueError(
                f"got keys without {sorted(names - set(data))} and with {sorted(set(data) - names)} besides"
            )
        try:
            return cls(
                **{
                    **data,
                    "signature": Signature.from_dict(data["signature"]),
                    "profiles": tuple(_profile(ranges) for ranges in data["profiles"]),
                    "weights_bytes": int(data["weights_bytes"]),
                    **{name: tuple(map(int, data[name])) for name in _BY_PROFILE},
                }
            )
        except (KeyError, TypeError, OverflowError) as exc:
            raise ValueError(f"{type(exc).__name__}: {exc}") from exc

    @classmethod
    def read(cls, path: Path) -> Self:
        """Reads a sidecar file.

        Raises:
            ModelLoadFailed: it cannot be read, or is not a sidecar of this version.
        """
        try:
            return cls.from_json(path.read_text(encoding="utf-8"))
        except OSError as exc:
            raise ModelLoadFailed(
                f"{path} cannot be read: {exc.strerror or exc}; build the plan anew"
            ) from exc
        except (ValueError, RecursionError) as exc:
            raise ModelLoadFailed(f"{path} is not a plan's sidecar: {exc}; build the plan anew") from exc

    def write(self, path: Path) -> None:
        """Writes the file in one step, so that a reader sees the old one or the new one.

        Raises:
            OSError: the folder cannot be written to.
        """
        handle, scratch = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(self.to_json())
                file.flush()
                os.fsync(file.fileno())
            os.replace(scratch, path)
        except BaseException:
            Path(scratch).unlink(missing_ok=True)
            raise


def _profile(ranges: list[Mapping[str, Any]]) -> Profile:
    return Profile(
        tuple(
            InputRange(str(item["name"]), tuple(item["min"]), tuple(item["opt"]), tuple(item["max"]))
            for item in ranges
        )
    )
