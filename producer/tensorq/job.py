"""The handle of a submitted job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tensorq.errors import JobError
from tensorq.status import Status

if TYPE_CHECKING:
    import numpy as np

    from tensorq.client import Client


class Job:
    """A job that was submitted; it holds the client and the id, no tensors.

    Attributes:
        id: the RQ job id, valid in any process and in RQ's own tools.
        model: the model's name; empty for a handle made from an id alone.
    """

    __slots__ = ("_client", "_outcome", "_owner", "id", "model")

    def __init__(self, client: Client, job_id: str, model: str = "", owner: str = "") -> None:
        """Made by a `Client`.

        Args:
            client: what reads the job's state.
            job_id: the RQ job id.
            model: the model's name.
            owner: whose completion list is told when the job ends; empty if that is not known.
        """
        self._client = client
        self._owner = owner
        # Fetched ahead by `Client.as_completed`, for as long as it hands out that part.
        self._outcome: bytes | JobError | None = None
        self.id = job_id
        self.model = model

    def result(self, timeout: float | None = None) -> dict[str, np.ndarray]:
        """Waits for the job and returns its outputs; see `Client.result`."""
        return self._client.result(self, timeout)

    def status(self) -> Status:
        """Where the job is in its life."""
        return self._client.status(self)

    def cancel(self) -> bool:
        """Cancels the job; see `Client.cancel`."""
        return self._client.cancel(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Job) and other.id == self.id

    def __hash__(self) -> int:
        return hash(self.id)

    def __repr__(self) -> str:
        return f"Job({self.id!r}, model={self.model!r})"
