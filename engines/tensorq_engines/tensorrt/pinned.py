"""Pinned: page-locked host memory, and the account of all of it in this process."""

from __future__ import annotations

import threading

import numpy as np

from tensorq_engines.base.errors import TileFailed
from tensorq_engines.tensorrt.cuda import memory

STEP_BYTES = 256 * 1024


class PinnedLedger:
    """Counts the page-locked bytes of this process, and refuses more than a limit.

    Attributes:
        limit_bytes: the most there may be; None for no limit but the host's.
    """

    def __init__(self, limit_bytes: int | None = None) -> None:
        self.limit_bytes = limit_bytes
        self._lock = threading.Lock()
        self._taken = 0

    @property
    def taken_bytes(self) -> int:
        """Page-locked bytes that there are now."""
        return self._taken

    def take(self, size: int) -> None:
        """Charges ``size`` bytes.

        Raises:
            TileFailed: they would exceed the limit.
        """
        with self._lock:
            if self.limit_bytes is not None and self._taken + size > self.limit_bytes:
                raise TileFailed(
                    f"a slot needs {size} bytes of page-locked memory, {self._taken} of "
                    f"{self.limit_bytes} are taken; raise the limit, or use fewer slots or smaller profiles"
                )
            self._taken += size

    def give(self, size: int) -> None:
        """Takes a charge back."""
        with self._lock:
            self._taken -= size


LEDGER = PinnedLedger()


class PinnedBlock:
    """One page-locked block that is replaced by a larger one when it must grow; its content is lost then.

    Attributes:
        array: ``uint8[capacity]`` over the memory; the same object until the block moves.
        address: where it begins.
    """

    def __init__(self) -> None:
        self._close_array()

    @property
    def capacity(self) -> int:
        """Bytes it holds."""
        return int(self.array.nbytes)

    def reserve(self, size: int) -> bool:
        """Makes sure of ``size`` bytes; returns whether the block moved. No copy may be under way.

        Raises:
            TileFailed: the process's limit is reached.
            CudaOutOfMemory: the host's is.
        """
        if size <= self.capacity:
            return False
        # Half as much again, so that sizes that creep up do not move the block each time.
        wanted = -(-max(size, self.capacity * 3 // 2) // STEP_BYTES) * STEP_BYTES
        self.close()
        LEDGER.take(wanted)
        try:
            self.array = memory.allocate_pinned(wanted)
        except BaseException:
            LEDGER.give(wanted)
            raise
        self.address = int(self.array.ctypes.data)
        return True

    def close(self) -> None:
        """Frees the memory; every view of it is invalid from here on. Idempotent."""
        if self.capacity:
            size, array = self.capacity, self.array
            self._close_array()
            memory.free_pinned(array)
            LEDGER.give(size)

    def _close_array(self) -> None:
        self.array = np.empty(0, np.uint8)
        self.address = 0
