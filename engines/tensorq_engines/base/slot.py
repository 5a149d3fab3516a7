"""Slot: the hold on one of a lane's staging areas, from acquire to release."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping
from enum import StrEnum

import numpy as np

from tensorq_engines.base.errors import SlotMisuse


class SlotState(StrEnum):
    """Where a slot stands. The order is filling, submitted, running, done, free."""

    FILLING = "filling"
    SUBMITTED = "submitted"
    RUNNING = "running"
    DONE = "done"
    FREE = "free"


class Slot(ABC):
    """One tile's way through a staging area; each `Lane.acquire` gives a new object.

    A slot belongs to one caller at a time, who must release it. The staging area's memory is the lane's:
    after `release` the lane gives it to the next slot, and every view of it shows that slot's bytes. A slot
    that was released refuses all further use.
    """

    def __init__(self, model: str, inputs: Mapping[str, np.ndarray], lock: threading.Lock) -> None:
        self.model = model
        self._inputs = inputs
        self._lock = lock
        self._state = SlotState.FILLING

    @property
    def state(self) -> SlotState:
        """Where the slot stands now; a running tile may be done a moment later."""
        return self._state

    @property
    def inputs(self) -> Mapping[str, np.ndarray]:
        """Writable views to fill, one an input, of exactly the shapes asked for, C order.

        They hold stale bytes at first. They must not be written to after submit.

        Raises:
            SlotMisuse: the slot is not filling.
        """
        self._expect("read inputs of", SlotState.FILLING)
        return self._inputs

    def wait(self, timeout_s: float | None = None) -> Mapping[str, np.ndarray]:
        """Waits for the tile and returns its outputs; may be called again, also after a failure.

        Args:
            timeout_s: seconds to wait; None waits as long as the tile runs.

        Returns:
            Read-only views, one an output, the batch axis included, valid until `release`.

        Raises:
            TileFailed: the tile failed, in the engine's own words.
            SlotTimeout: the tile is not done in time.
            EngineFatal: the process must end.
            SlotMisuse: the slot was not submitted, or was released.
        """
        self._expect("wait for", SlotState.SUBMITTED, SlotState.RUNNING, SlotState.DONE)
        return self._await(timeout_s)

    @property
    def busy_s(self) -> float:
        """Seconds that the engine itself was busy with this tile; to be read after `wait`.

        From the tile's copy in to its copy out: what the host does before and after, and what other tiles of
        the lane take, is not in it. Tiles of other lanes that run at the same time make it longer. 0 for a
        tile that failed before it ran.

        Raises:
            SlotMisuse: the tile is not done, or the slot was released.
        """
        self._expect("read busy_s of", SlotState.DONE)
        return self._busy()

    def release(self) -> None:
        """Gives the staging area back to the lane; input and output views are invalid from here on.

        A slot that is filling may be released too: its tile is abandoned.

        Raises:
            SlotMisuse: the tile is submitted and not done, or the slot was released before.
        """
        with self._lock:
            self._expect("release", SlotState.FILLING, SlotState.DONE)
            self._state = SlotState.FREE
            self._inputs = {}
            self._free()

    def _expect(self, action: str, *states: SlotState) -> None:
        if self._state not in states:
            raise SlotMisuse(
                f"cannot {action} a slot of model {self.model!r} that is {self._state}: "
                f"it must be {' or '.join(states)}; {_ADVICE[self._state]}"
            )

    @abstractmethod
    def _await(self, timeout_s: float | None) -> Mapping[str, np.ndarray]:
        """Waits for the submitted tile; see `wait`."""

    @abstractmethod
    def _busy(self) -> float:
        """Returns `busy_s` of a tile that is done."""

    @abstractmethod
    def _free(self) -> None:
        """Returns the staging area to the lane; called once, with the lock held."""


_ADVICE = {
    SlotState.FILLING: "submit it first",
    SlotState.SUBMITTED: "wait() until it is done",
    SlotState.RUNNING: "wait() until it is done",
    SlotState.DONE: "release() it and acquire another",
    SlotState.FREE: "acquire another",
}
