"""rapidocr's classifier and recogniser with all lines of a page in flight at once.

rapidocr takes six lines at a time and waits for each six; how wide they are padded depends on their
company, so its own code keeps making the batches. Here its session only submits, its postprocessing only
notes where a result belongs, and both are made up for once every line has been submitted.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

import cv2
import numpy as np
from ops.demo.queue_session import QueueSession

from tensorq import Job


@dataclass(slots=True)
class Batch:
    """One of rapidocr's batches: a job for each row, and what its postprocessing is called with."""

    jobs: list[Job]
    arguments: tuple[Any, ...] = ()
    options: dict[str, Any] = field(default_factory=dict)


class Deferred:
    """A copy of one of rapidocr's stages that makes batches and submits them, and waits at the end."""

    def __init__(self, stage: Any, attribute: str, session: QueueSession) -> None:
        self._postprocess = stage.postprocess_op
        self._session = session
        self._stage = copy.copy(stage)
        setattr(self._stage, attribute, self._submit)
        self._stage.postprocess_op = self._note
        self._batches: list[Batch] = []

    def _submit(self, rows: np.ndarray) -> list[Batch]:
        self._batches.append(Batch(self._session.submit_rows(rows)))
        return [self._batches[-1]]

    def _note(self, batch: Batch, *arguments: Any, **options: Any) -> list[Any]:
        batch.arguments, batch.options = arguments, options
        return [self._place(batch, row) for row in range(len(batch.jobs))]

    def _place(self, batch: Batch, row: int) -> Any:
        return ("", (id(batch), row))

    def _results(self) -> dict[tuple[int, int], Any]:
        """Waits for all batches and returns rapidocr's result of each row, by batch and row."""
        batches, self._batches = self._batches, []
        outputs = iter(self._session.gather([job for batch in batches for job in batch.jobs]))
        found: dict[tuple[int, int], Any] = {}
        for batch in batches:
            whole = np.concatenate([next(outputs) for _ in batch.jobs])
            results = self._postprocess(whole, *batch.arguments, **batch.options)
            found |= {(id(batch), row): result for row, result in enumerate(results)}
        return found


class QueuedClassifier(Deferred):
    """rapidocr's ``TextClassifier``: turns lines that are upside down."""

    def __call__(self, images: list[np.ndarray]) -> tuple[list[np.ndarray], list[list[Any]], float]:
        turned, places, elapsed = self._stage(images)
        results = self._results()
        labels = [list(results[place]) for _, place in places]
        for index, (label, score) in enumerate(labels):
            if "180" in label and score > self._stage.cls_thresh:
                turned[index] = cv2.rotate(turned[index], cv2.ROTATE_180)
        return turned, labels, elapsed


class QueuedRecogniser(Deferred):
    """rapidocr's ``TextRecognizer``: reads lines."""

    def __call__(self, images: list[np.ndarray], word_boxes: bool = False) -> tuple[list[Any], float]:
        places, elapsed = self._stage(images, word_boxes)
        results = self._results()
        return [results[place] for _, place in places], elapsed
