"""Recipe: all that goes into a plan, and the key that it gives. Pure."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass

from tensorq_engines.base.profile import Profile

RECIPE_VERSION = 1
"""Raised whenever the builder makes another plan of the same recipe."""


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """What the builder is told besides precision and profiles.

    Attributes:
        optimization_level: 0 to 5; None leaves it to TensorRT.
        workspace_mib: scratch memory that a kernel may ask for; None leaves all that the GPU has.
        tf32: whether float32 products may round their factors to TF32.
        detailed_layers: keep what the engine inspector shows of layers, such as their types.
    """

    optimization_level: int | None = None
    workspace_mib: int | None = None
    tf32: bool = True
    detailed_layers: bool = False


@dataclass(frozen=True, slots=True)
class Recipe:
    """What a plan depends on; two recipes that differ in anything have different keys.

    Attributes:
        model: digest of the ONNX file and its external data.
        batch_axis: what model.toml says of the batch axis, which the sidecar's signature depends on.
        rewrites: each change of the graph, with its settings and the version of what makes it.
        calibration: digest of the quantized graph; empty where the precision needs none.
        precision: what model.toml asks for.
        flags: builder flags that make it.
        profiles: the plan's profiles, in order.
        options: the builder's options.
        plugins: digests of plugin libraries, in the order they are loaded.
        os: such as ``linux``.
        arch: such as ``x86_64``.
        flavour: ``tensorrt`` or ``tensorrt_rtx``.
        flavour_version: TensorRT's full version.
        compute_capability: the GPU's, such as ``9.0``; empty where there is none.
        device_name: the GPU's; empty where there is none.
        version: of this format and of the builder.
    """

    model: str
    batch_axis: str
    rewrites: tuple[str, ...]
    calibration: str
    precision: str
    flags: tuple[str, ...]
    profiles: tuple[Profile, ...]
    options: BuildOptions
    plugins: tuple[str, ...]
    os: str
    arch: str
    flavour: str
    flavour_version: str
    compute_capability: str
    device_name: str
    version: int = RECIPE_VERSION

    @property
    def key(self) -> str:
        """The sha256 of all of it, in hex."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()

    @property
    def target(self) -> str:
        """What the plan runs on, as part of a file name: plans and timings of one target go together."""
        bound = f"sm{self.compute_capability.replace('.', '')}" if self.compute_capability else "any"
        return f"{self.flavour}-{self.flavour_version}-{bound}"

    @property
    def file_name(self) -> str:
        """The plan's name in a cache folder."""
        return f"{self.target}-{self.key[:16]}.plan"
