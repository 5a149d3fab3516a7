"""Arena: device memory of one lane that all its contexts use in turn."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from tensorq_engines.tensorrt.cuda import memory
from tensorq_engines.tensorrt.cuda.addresses import AddressRange
from tensorq_engines.tensorrt.cuda.device import Device
from tensorq_engines.tensorrt.cuda.errors import CudaError

STEP_BYTES = 2 * 1024 * 1024


class Arena(ABC):
    """Memory that grows when asked and shrinks when told. Its caller holds the process's lock.

    Only work of the lane's stream uses it, and that is serial: one tile at a time.
    """

    @property
    @abstractmethod
    def address(self) -> int:
        """Where the memory begins, aligned to 256 bytes and more; 0 before the first `reserve`."""

    @property
    @abstractmethod
    def size_bytes(self) -> int:
        """Device memory taken."""

    @abstractmethod
    def reserve(self, size: int) -> None:
        """Makes sure of at least ``size`` bytes.

        Raises:
            CudaOutOfMemory: the device has too little.
        """

    @abstractmethod
    def trim(self, size: int) -> None:
        """Gives back what lies above ``size`` bytes, as far as that is possible without moving.

        Nothing may be running on it.
        """

    @abstractmethod
    def close(self) -> None:
        """Gives all of it back; nothing may be running on it. Idempotent."""


class GrowingArena(Arena):
    """A reserved range of addresses with memory mapped to its end: it never moves, so graphs stay valid."""

    def __init__(self, device: Device) -> None:
        self._device = device
        self._range: AddressRange | None = None

    @property
    def address(self) -> int:
        """See `Arena.address`."""
        return 0 if self._range is None else self._range.base

    @property
    def size_bytes(self) -> int:
        """See `Arena.size_bytes`."""
        return 0 if self._range is None else self._range.mapped_bytes

    def reserve(self, size: int) -> None:
        """See `Arena.reserve`; tiles may be running meanwhile."""
        if self._range is None:
            self._range = AddressRange(self._device, self._device.memory_bytes)
        self._range.grow(size)

    def trim(self, size: int) -> None:
        """See `Arena.trim`."""
        if self._range is not None:
            self._range.shrink(size)

    def close(self) -> None:
        """See `Arena.close`."""
        if self._range is not None:
            self._range.close()
            self._range = None


class MovingArena(Arena):
    """One allocation that is freed and made anew to grow, for devices without address ranges."""

    def __init__(self, before_move: Callable[[], None]) -> None:
        """Keeps what it is told.

        Args:
            before_move: waits for the stream and destroys the graphs that know the old address.
        """
        self._before_move = before_move
        self._address = 0
        self._size = 0

    @property
    def address(self) -> int:
        """See `Arena.address`."""
        return self._address

    @property
    def size_bytes(self) -> int:
        """See `Arena.size_bytes`."""
        return self._size

    def reserve(self, size: int) -> None:
        """See `Arena.reserve`; the memory moves and its content is lost.

        Where the device has too little it is as large as before, unless that is gone too.
        """
        if size <= self._size:
            return
        before = self._size
        try:
            self._replace(-(-size // STEP_BYTES) * STEP_BYTES)
        except CudaError:
            # Contexts and tiles of other models count on it.
            self._replace(before)
            raise

    def trim(self, size: int) -> None:
        """See `Arena.trim`: only all of it can go."""
        if size == 0:
            self._replace(0)

    def close(self) -> None:
        """See `Arena.close`."""
        self._replace(0)

    def _replace(self, size: int) -> None:
        if self._address:
            self._before_move()
            memory.free(self._address)
            self._address = self._size = 0
        if size:
            self._address = memory.allocate(size)
            self._size = size
