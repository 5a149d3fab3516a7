"""Streams and events. The caller's thread uses the device."""

from __future__ import annotations

import time
from typing import Any

from tensorq_engines.tensorrt.cuda.status import ready, runtime

NON_BLOCKING = 1
BLOCKING_SYNC = 1
DISABLE_TIMING = 2

POLL_FIRST_S = 20e-6
POLL_LAST_S = 1e-3


class Event:
    """A mark in a stream that threads wait for without the GIL, asleep or on a busy core.

    ``cudaEventSynchronize`` has no timeout, so a wait with one polls.
    """

    def __init__(self, *, spin: bool = False, timing: bool = False) -> None:
        """Makes the event.

        Args:
            spin: wait on a busy core instead of asleep.
            timing: keep the time at which the marked work was done, for `elapsed_s`.
        """
        flags = (0 if spin else BLOCKING_SYNC) | (0 if timing else DISABLE_TIMING)
        self.handle: Any = runtime("cudaEventCreateWithFlags", flags)

    def record(self, stream: Stream) -> None:
        """Marks the work queued in ``stream`` so far; an earlier mark is forgotten."""
        runtime("cudaEventRecord", self.handle, stream.handle)

    def elapsed_s(self, later: Event) -> float:
        """Returns the seconds on the device from this mark to ``later``; both with timing, recorded and done.

        CUDA gives milliseconds in float32: to about half a microsecond over seconds, and worse over minutes.

        Raises:
            CudaError: one of them is not.
        """
        return float(runtime("cudaEventElapsedTime", self.handle, later.handle)) / 1000

    @property
    def done(self) -> bool:
        """Whether the marked work is done.

        Raises:
            EngineFatal: that work left the process without a usable GPU.
        """
        return ready("cudaEventQuery", self.handle)

    def wait(self, timeout_s: float | None = None) -> bool:
        """Waits for the marked work; returns whether it is done.

        Raises:
            EngineFatal: that work left the process without a usable GPU.
        """
        if timeout_s is None:
            runtime("cudaEventSynchronize", self.handle)
            return True
        deadline = time.monotonic() + timeout_s
        pause_s = POLL_FIRST_S
        while not self.done:
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                return False
            time.sleep(min(pause_s, left_s))
            pause_s = min(2 * pause_s, POLL_LAST_S)
        return True

    def close(self) -> None:
        """Destroys the event; idempotent."""
        if self.handle is not None:
            runtime("cudaEventDestroy", self.handle)
            self.handle = None


class Stream:
    """Work in order. Non-blocking: the legacy default stream neither waits for it nor holds it up."""

    def __init__(self) -> None:
        self.handle: Any = runtime("cudaStreamCreateWithFlags", NON_BLOCKING)
        self.number = int(self.handle)

    def synchronize(self) -> None:
        """Waits until all that was queued is done.

        Raises:
            EngineFatal: it left the process without a usable GPU.
        """
        runtime("cudaStreamSynchronize", self.handle)

    def expect_healthy(self) -> None:
        """Returns unless an error that sticks has surfaced, whoever caused it.

        Raises:
            EngineFatal: one has.
        """
        ready("cudaStreamQuery", self.handle)

    def wait_for(self, event: Event) -> None:
        """Makes work queued from here on wait for ``event``, without holding up the host."""
        runtime("cudaStreamWaitEvent", self.handle, event.handle, 0)

    def close(self) -> None:
        """Destroys the stream; idempotent. Work that it still holds runs to its end."""
        if self.handle is not None:
            runtime("cudaStreamDestroy", self.handle)
            self.handle = None
