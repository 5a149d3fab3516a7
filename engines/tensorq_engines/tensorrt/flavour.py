"""Flavour: the TensorRT that is installed. The only module that imports it and knows its versions."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from tensorq_engines.base.errors import ModelLoadFailed
from tensorq_engines.tensorrt.cuda.device import Device
from tensorq_engines.tensorrt.log import Log
from tensorq_engines.tensorrt.process import CHANGES, keep_for_good

NAMES = ("tensorrt", "tensorrt_rtx")

DTYPES = {
    "FLOAT": "float32",
    "HALF": "float16",
    "INT8": "int8",
    "INT32": "int32",
    "INT64": "int64",
    "BOOL": "bool",
    "UINT8": "uint8",
}
"""numpy's names of the dtypes that a job can carry; the others have none."""


class Flavour:
    """One TensorRT module, with the differences between versions behind it.

    Attributes:
        name: ``tensorrt`` or ``tensorrt_rtx``.
        module: the module itself.
        version_text: its full version.
        log: the process's logger.
    """

    def __init__(self, name: str, module: Any) -> None:
        self.name = name
        self.module = module
        self.version_text = str(module.__version__)
        self.log = Log(module)
        self._runtime: Any = None

    @property
    def captures(self) -> bool:
        """Whether tiles are captured by us; TensorRT-RTX captures by itself, and both at once would clash."""
        return self.name == "tensorrt"

    def runtime(self) -> Any:
        """Returns the process's ``Runtime``, which lives as long as the process.

        Raises:
            CudaMissing: there is no usable GPU; TensorRT itself would end the process.
        """
        Device.require().use()
        with CHANGES:
            if self._runtime is None:
                self._runtime = self.module.Runtime(self.log.native)
                keep_for_good(self._runtime)
            return self._runtime

    def activation_bytes(self, engine: Any, profile: int) -> int:
        """Returns the device memory that a context of an engine needs for one profile.

        8.6 knows only the largest over all profiles.
        """
        for name in ("get_device_memory_size_for_profile_v2", "get_device_memory_size_for_profile"):
            if hasattr(engine, name):
                return int(getattr(engine, name)(profile))
        if hasattr(engine, "device_memory_size_v2"):
            return int(engine.device_memory_size_v2)
        return int(engine.device_memory_size)

    def create_context(self, engine: Any, *, private: bool = False) -> Any:
        """Returns a context, or None where TensorRT refuses.

        Args:
            engine: the ``ICudaEngine``.
            private: the context allocates its own memory, for the largest profile; else it has none and
                `give_memory` must come before it runs.
        """
        if private:
            return engine.create_execution_context()
        strategies = getattr(self.module, "ExecutionContextAllocationStrategy", None)
        if strategies is not None:
            return engine.create_execution_context(strategies.USER_MANAGED)
        return engine.create_execution_context_without_device_memory()

    def give_memory(self, context: Any, address: int, size: int) -> None:
        """Tells a context where its activations go: ``size`` bytes at a 256-byte boundary."""
        if hasattr(context, "set_device_memory"):
            context.set_device_memory(address, size)
        else:
            context.device_memory = address

    def dtype_name(self, dtype: Any) -> str | None:
        """Returns numpy's name of a TensorRT dtype; None where numpy has none (bf16, fp8, int4)."""
        return DTYPES.get(dtype.name)

    def is_input(self, engine: Any, tensor: str) -> bool:
        """Tells whether a tensor of an engine is an input."""
        return bool(engine.get_tensor_mode(tensor) == self.module.TensorIOMode.INPUT)

    def is_on_host(self, engine: Any, tensor: str) -> bool:
        """Tells whether TensorRT reads or writes a tensor in host memory, as it does shape tensors."""
        return bool(engine.get_tensor_location(tensor) == self.module.TensorLocation.HOST)


def installed() -> tuple[str, ...]:
    """Returns which TensorRT modules there are; none is imported."""
    return tuple(name for name in NAMES if _is_there(name))


def find(name: str | None = None) -> Flavour:
    """Returns the installed TensorRT, of the name given or the first there is; imports it once.

    Raises:
        ModelLoadFailed: it is not installed, or cannot be imported.
    """
    names = installed() if name is None else (name,)
    if not names:
        raise ModelLoadFailed(
            "no TensorRT is installed: got neither module tensorrt nor tensorrt_rtx; "
            "install one with pip install 'tensorq[tensorrt]', or choose engine 'onnxruntime' in model.toml"
        )
    return _open(names[0])


@cache
def _open(name: str) -> Flavour:
    try:
        return Flavour(name, import_module(name))
    except ImportError as exc:
        raise ModelLoadFailed(
            f"TensorRT's module {name} cannot be imported: {exc}; install it and its libraries, "
            "or choose engine 'onnxruntime' in model.toml"
        ) from exc


def _is_there(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ValueError:  # a module that was put in place without a spec
        return False
