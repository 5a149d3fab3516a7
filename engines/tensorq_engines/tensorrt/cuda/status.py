"""Status: the one place that turns the status of a CUDA call into an exception."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

from tensorq_engines.base.errors import EngineFatal
from tensorq_engines.tensorrt.cuda.errors import CudaError, CudaMissing, CudaOutOfMemory

OUT_OF_MEMORY = 2
NOT_READY = 600

# After these the context, and with it every allocation, stream and graph of the process, is lost.
STICKY = frozenset(
    {
        4,  # the runtime is unloading
        214,  # uncorrectable ECC error
        220,  # uncorrectable NVLink error
        *(700, 702, 709, 710, 714, 715, 716, 717, 718, 719),  # a kernel's fault, or the context is gone
        721,  # a fault of another process on the same GPU
        999,  # unknown to the driver itself
    }
)

REMEDY = "restart the process: nothing on the GPU can be used or freed any more"

_fatal: EngineFatal | None = None


def runtime(name: str, *args: Any) -> Any:
    """Calls a function of the CUDA runtime and returns what it gives beside its status.

    Returns:
        None, the one value, or a tuple of several.

    Raises:
        CudaError: the call failed.
        EngineFatal: the call, or one before it, left the process without a usable GPU.
        CudaMissing: cuda-python is not installed.
    """
    module = runtime_module()
    return _check(module, name, getattr(module, name)(*args))


def driver(name: str, *args: Any) -> Any:
    """Calls a function of the CUDA driver; see `runtime`."""
    return _check(driver_module(), name, getattr(driver_module(), name)(*args))


def ready(name: str, handle: Any) -> bool:
    """Calls a query function of the runtime; returns whether the work is done.

    Raises:
        CudaError: see `runtime`.
        EngineFatal: see `runtime`.
    """
    module = runtime_module()
    result = getattr(module, name)(handle)
    if int(result[0]) == NOT_READY:
        return False
    _check(module, name, result)
    return True


def runtime_module() -> Any:
    """Returns cuda-python's binding of the CUDA runtime."""
    return _import("cuda.bindings.runtime")


def driver_module() -> Any:
    """Returns cuda-python's binding of the CUDA driver."""
    return _import("cuda.bindings.driver")


def fatal() -> EngineFatal | None:
    """Returns the error that ended this process's use of the GPU, if there was one."""
    return _fatal


def expect_alive() -> None:
    """Returns if no error has ended this process's use of the GPU.

    Raises:
        EngineFatal: one has.
    """
    if _fatal is not None:
        raise _fatal.with_traceback(None)


def clear_last_error() -> None:
    """Forgets the thread's last error, which the next launch would report once more."""
    runtime_module().cudaGetLastError()


def _check(module: Any, name: str, result: tuple[Any, ...]) -> Any:
    code = int(result[0])
    if code:
        raise _error(code, name, module)
    if len(result) == 1:
        return None
    return result[1] if len(result) == 2 else result[1:]


def _error(code: int, call: str, module: Any) -> CudaError | EngineFatal:
    global _fatal
    title, text = _words(code, module)
    if code in STICKY:
        if _fatal is None:
            _fatal = EngineFatal(f"{call} returned {code} ({title}): {text}; {REMEDY}")
        return _fatal
    clear_last_error()
    kind = CudaOutOfMemory if code == OUT_OF_MEMORY else CudaError
    return kind(code, title, text, call)


def _words(code: int, module: Any) -> tuple[str, str]:
    prefix = "cuda" if hasattr(module, "cudaGetErrorString") else "cu"
    try:
        enum = module.cudaError_t if prefix == "cuda" else module.CUresult
        found = [
            getattr(module, f"{prefix}{function}")(enum(code))[1]
            for function in ("GetErrorName", "GetErrorString")
        ]
        return found[0].decode(), found[1].decode()
    except Exception:  # a code that this cuda-python does not know, or a driver that answers nothing
        return "no name", "no text"


def _import(name: str) -> Any:
    try:
        # Asked for with every CUDA call, and import_module takes a microsecond.
        return sys.modules.get(name) or import_module(name)
    except ImportError as exc:
        raise CudaMissing(
            f"cuda-python cannot be imported: {exc}; install it with pip install 'tensorq[tensorrt]'"
        ) from exc
