"""Inference through the queue, in the places where rapidocr has its onnxruntime sessions."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from tensorq import Client, Job
from tensorq.errors import ResultTimeout

Array = np.ndarray
TIMEOUT_S = 120.0
LOOK_S = 2.0


class QueueSession:
    """One model, run by whichever worker takes its jobs.

    Args:
        client: submits the jobs.
        model: the model's name.
        output: name of the output that is wanted.
        check: raises if nobody is left to run the jobs.
    """

    def __init__(self, client: Client, model: str, output: str, check: Callable[[], None]) -> None:
        self._client = client
        self._model = model
        self._output = output
        self._check = check

    def __call__(self, batch: Array) -> list[Array]:
        """What rapidocr calls: runs a batch as one job and waits; ``[output]``."""
        return [self.gather([self._client.submit(self._model, {"x": batch})])[0]]

    def submit_rows(self, batch: Array) -> list[Job]:
        """Submits each row as a job of its own: how to batch them is the worker's business."""
        return self._client.submit_many(
            self._model, [{"x": batch[row : row + 1]} for row in range(len(batch))]
        )

    def gather(self, jobs: list[Job]) -> list[Array]:
        """Waits for jobs and returns their outputs in order, each with its rows along the first axis."""
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            self._check()
            try:
                return [found[self._output] for found in self._client.gather(jobs, timeout=LOOK_S)]
            except ResultTimeout:
                if time.monotonic() > deadline:
                    raise
