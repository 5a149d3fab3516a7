"""Dynamic outputs: those whose shapes depend on the data, such as NonZero's, with memory as each run asks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tensorq_engines.base.errors import EngineError
from tensorq_engines.tensorrt.cuda import memory


class DynamicOutput:
    """One output's device memory, which grows, and the shape that the last run gave.

    Attributes:
        native: the ``IOutputAllocator`` that TensorRT calls while it queues a run.
        address: where the output lies; valid until the next run.
        shape: of the last run; None until TensorRT tells it.
        failure: why memory could not be given, in the last run.
    """

    def __init__(self, native: Any) -> None:
        self.native = native
        self.address = 0
        self.shape: tuple[int, ...] | None = None
        self.failure: EngineError | None = None
        self._capacity = 0

    @property
    def size_bytes(self) -> int:
        """Device memory taken."""
        return self._capacity

    def begin(self) -> None:
        """Forgets the last run."""
        self.shape = self.failure = None

    def reserve(self, size: int) -> int:
        """Returns the address of at least ``size`` bytes, or 0 where there is too little memory."""
        size = max(size, 1)
        if size > self._capacity:
            try:
                self.close()
                self.address = memory.allocate(size)
            except EngineError as exc:
                # TensorRT calls this from C++, where an exception would be lost.
                self.failure = exc
                return 0
            self._capacity = size
        return self.address

    def close(self) -> None:
        """Frees the memory, after all work on the device; idempotent."""
        if self._capacity:
            self._capacity = 0
            memory.free(self.address)
            self.address = 0


def make_dynamic_outputs(module: Any, names: Iterable[str]) -> dict[str, DynamicOutput]:
    """Returns one for each name.

    Args:
        module: the TensorRT module.
        names: outputs.
    """

    class Allocator(module.IOutputAllocator):  # type: ignore[misc]
        """8.6 calls the first method, newer versions the second; both call the third."""

        def __init__(self) -> None:
            module.IOutputAllocator.__init__(self)
            self.output: DynamicOutput

        def reallocate_output(self, name: str, address: int, size: int, alignment: int) -> int:
            return self.output.reserve(size)

        def reallocate_output_async(
            self, name: str, address: int, size: int, alignment: int, stream: int
        ) -> int:
            return self.output.reserve(size)

        def notify_shape(self, name: str, shape: Iterable[int]) -> None:
            self.output.shape = tuple(int(length) for length in shape)

    made = {}
    for name in names:
        native = Allocator()
        made[name] = native.output = DynamicOutput(native)
    return made
