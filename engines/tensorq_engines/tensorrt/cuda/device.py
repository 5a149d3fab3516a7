"""Device: the GPU that this process uses, asked for through CUDA before TensorRT is touched."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tensorq_engines.base.errors import EngineError
from tensorq_engines.tensorrt.cuda.errors import CudaMissing
from tensorq_engines.tensorrt.cuda.status import driver, driver_module, runtime

ORDINAL = 0
"""One worker process has one GPU, the first that CUDA_VISIBLE_DEVICES leaves."""

MODULE_VERSION = Path("/sys/module/nvidia/version")

_local = threading.local()


@dataclass(frozen=True, slots=True)
class Device:
    """A GPU.

    Attributes:
        ordinal: CUDA's number of it in this process.
        name: such as ``NVIDIA H200``.
        compute_capability: such as ``9.0``.
        memory_bytes: all of its memory.
        has_address_ranges: whether addresses can be reserved and memory mapped into them.
    """

    ordinal: int
    name: str
    compute_capability: str
    memory_bytes: int
    has_address_ranges: bool

    @classmethod
    def probe(cls) -> Device | None:
        """Returns the GPU, or None where there is none; the first answer stands for the process's life.

        A GPU that is asked for in a process must not be used by its forks.
        """
        found = _probe()
        return found if isinstance(found, Device) else None

    @classmethod
    def require(cls) -> Device:
        """Returns the GPU.

        Raises:
            CudaMissing: there is none; the message says why, as far as CUDA does.
        """
        found = _probe()
        if isinstance(found, Device):
            return found
        raise CudaMissing(f"no usable GPU: {found}")

    def use(self) -> None:
        """Makes the device's primary context current on the calling thread; cheap when it is already."""
        if getattr(_local, "ordinal", None) != self.ordinal:
            runtime("cudaSetDevice", self.ordinal)
            _local.ordinal = self.ordinal


def driver_version() -> str:
    """Returns the driver's version; where the system hides it, that of CUDA which it has."""
    try:
        return f"driver {MODULE_VERSION.read_text(encoding='ascii').strip()}"
    except OSError:
        return f"driver of CUDA {runtime('cudaDriverGetVersion')}"


@cache
def _probe() -> Device | str:
    try:
        driver("cuInit", 0)
        if runtime("cudaGetDeviceCount") == 0:
            return "CUDA sees no device; is CUDA_VISIBLE_DEVICES empty?"
        handle = driver("cuDeviceGet", ORDINAL)
        names = driver_module().CUdevice_attribute
        major, minor, ranges = (
            driver("cuDeviceGetAttribute", getattr(names, f"CU_DEVICE_ATTRIBUTE_{name}"), handle)
            for name in (
                "COMPUTE_CAPABILITY_MAJOR",
                "COMPUTE_CAPABILITY_MINOR",
                "VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED",
            )
        )
        title = driver("cuDeviceGetName", 128, handle).split(b"\0")[0].decode()
        size = int(driver("cuDeviceTotalMem", handle))
        return Device(ORDINAL, title, f"{major}.{minor}", size, bool(ranges))
    except EngineError as exc:
        return f"{exc}; check the driver with nvidia-smi"
    except Exception as exc:  # cuda-python's own errors where there is no driver library at all
        return f"{type(exc).__name__}: {exc}"
