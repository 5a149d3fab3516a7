"""Memory of the device, and page-locked memory of the host. The caller's thread uses the device."""

from __future__ import annotations

import ctypes

import numpy as np

from tensorq_engines.tensorrt.cuda.status import runtime, runtime_module

HOST_ALLOC_DEFAULT = 0


def allocate(size: int) -> int:
    """Returns the address of ``size`` bytes of device memory; the caller owns it.

    Raises:
        CudaOutOfMemory: there is too little.
    """
    return int(runtime("cudaMalloc", size))


def free(address: int) -> None:
    """Frees what `allocate` gave; waits for the device first."""
    runtime("cudaFree", address)


def allocate_pinned(size: int) -> np.ndarray:
    """Returns ``uint8[size]`` over page-locked memory; the caller owns it and calls `free_pinned`.

    Raises:
        CudaOutOfMemory: the host has too little.
    """
    address = int(runtime("cudaHostAlloc", size, HOST_ALLOC_DEFAULT))
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(address))


def free_pinned(array: np.ndarray) -> None:
    """Frees what `allocate_pinned` gave; every view of it is invalid from here on."""
    runtime("cudaFreeHost", array.ctypes.data)


def copy_in(device: int, host: int, size: int, stream: int) -> None:
    """Queues a copy of ``size`` bytes from page-locked memory to the device."""
    kind = runtime_module().cudaMemcpyKind.cudaMemcpyHostToDevice
    runtime("cudaMemcpyAsync", device, host, size, kind, stream)


def copy_out(host: int, device: int, size: int, stream: int) -> None:
    """Queues a copy of ``size`` bytes from the device to page-locked memory."""
    kind = runtime_module().cudaMemcpyKind.cudaMemcpyDeviceToHost
    runtime("cudaMemcpyAsync", host, device, size, kind, stream)


def free_and_total() -> tuple[int, int]:
    """Returns bytes of device memory that are free, and that there are."""
    available, total = runtime("cudaMemGetInfo")
    return int(available), int(total)
