"""Gauge: device memory in use, by the driver's account."""

from __future__ import annotations

from tensorq_engines.tensorrt.cuda.device import Device
from tensorq_engines.tensorrt.cuda.memory import free_and_total


class DeviceGauge:
    """Reads the GPU that this process uses, which CUDA is first asked for when the gauge is read."""

    def used_bytes(self) -> int | None:
        """Returns the device memory that all processes use together; None where there is no GPU.

        Raises:
            EngineFatal: an earlier error left the process without a usable GPU.
        """
        known = self._read()
        return None if known is None else known[1] - known[0]

    def free_bytes(self) -> int | None:
        """Returns the device memory that no process uses; None where there is no GPU.

        Raises:
            EngineFatal: an earlier error left the process without a usable GPU.
        """
        known = self._read()
        return None if known is None else known[0]

    def _read(self) -> tuple[int, int] | None:
        device = Device.probe()
        if device is None:
            return None
        device.use()
        return free_and_total()
