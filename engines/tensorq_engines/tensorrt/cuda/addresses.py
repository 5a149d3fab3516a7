"""Addresses: a reserved range of device addresses, with memory mapped to its end in steps."""

from __future__ import annotations

from typing import Any

from tensorq_engines.tensorrt.cuda.device import Device
from tensorq_engines.tensorrt.cuda.errors import CudaOutOfMemory
from tensorq_engines.tensorrt.cuda.status import OUT_OF_MEMORY, driver, driver_module

BLOCK_BYTES = 32 * 1024 * 1024


class AddressRange:
    """Device memory that grows and shrinks at its end and never moves.

    Physical memory comes in blocks of at most `BLOCK_BYTES`; shrinking gives back whole blocks.

    Attributes:
        base: the first address.
        granularity: the driver's step, in bytes; every size is a multiple of it.
    """

    def __init__(self, device: Device, reserve_bytes: int) -> None:
        """Reserves addresses; no memory is taken yet.

        Args:
            device: in use on this thread.
            reserve_bytes: the most that can ever be mapped; rounded up.
        """
        module = driver_module()
        self._location = module.CUmemLocation()
        self._location.type = module.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        self._location.id = device.ordinal
        self._kind = module.CUmemAllocationProp()
        self._kind.type = module.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
        self._kind.location = self._location
        minimum = module.CUmemAllocationGranularity_flags.CU_MEM_ALLOC_GRANULARITY_MINIMUM
        self.granularity = int(driver("cuMemGetAllocationGranularity", self._kind, minimum))
        self._reserved = self._round(reserve_bytes)
        self.base = int(driver("cuMemAddressReserve", self._reserved, 0, 0, 0))
        self._blocks: list[tuple[int, Any]] = []
        self.mapped_bytes = 0

    def grow(self, size: int) -> None:
        """Maps memory so that at least ``size`` bytes from `base` are there; work may be running below.

        Raises:
            CudaOutOfMemory: there is too little, or more than was reserved; what was mapped before stays,
                and no more.
        """
        wanted, before = self._round(size), self.mapped_bytes
        if wanted > self._reserved:
            text = f"got {wanted} bytes to map, of {self._reserved} reserved"
            raise CudaOutOfMemory(OUT_OF_MEMORY, "cudaErrorMemoryAllocation", text, "AddressRange.grow")
        try:
            while self.mapped_bytes < wanted:
                self._map(min(wanted - self.mapped_bytes, self._round(BLOCK_BYTES)))
        except BaseException:
            self.shrink(before)
            raise

    def shrink(self, size: int) -> None:
        """Gives back the blocks that lie wholly above ``size`` bytes; nothing may be running on them."""
        while self._blocks and self.mapped_bytes - self._blocks[-1][0] >= size:
            step, handle = self._blocks.pop()
            self.mapped_bytes -= step
            driver("cuMemUnmap", self.base + self.mapped_bytes, step)
            driver("cuMemRelease", handle)

    def close(self) -> None:
        """Gives all memory and the addresses back; idempotent."""
        if self.base:
            self.shrink(0)
            driver("cuMemAddressFree", self.base, self._reserved)
            self.base = 0

    def _map(self, step: int) -> None:
        handle = driver("cuMemCreate", step, self._kind, 0)
        end = self.base + self.mapped_bytes
        mapped = False
        try:
            driver("cuMemMap", end, step, 0, handle, 0)
            mapped = True
            driver("cuMemSetAccess", end, step, [self._access()], 1)
        except BaseException:
            if mapped:
                driver("cuMemUnmap", end, step)
            driver("cuMemRelease", handle)
            raise
        self._blocks.append((step, handle))
        self.mapped_bytes += step

    def _access(self) -> Any:
        module = driver_module()
        access = module.CUmemAccessDesc()
        access.location = self._location
        access.flags = module.CUmemAccess_flags.CU_MEM_ACCESS_FLAGS_PROT_READWRITE
        return access

    def _round(self, size: int) -> int:
        return -(-size // self.granularity) * self.granularity
