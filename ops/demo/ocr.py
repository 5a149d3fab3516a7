"""Reading a page with rapidocr: alone, or with every inference through the queue."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ops.demo import repository
from ops.demo.deferred import QueuedClassifier, QueuedRecogniser
from ops.demo.queue_session import QueueSession
from rapidocr_onnxruntime import RapidOCR

from tensorq import Client


@dataclass(frozen=True, slots=True)
class Line:
    """A line of text on a page.

    Attributes:
        box: four corners (x, y) in pixels, clockwise from the upper left.
        text: what it says.
        score: how sure the model is, 0 to 1.
    """

    box: tuple[tuple[float, float], ...]
    text: str
    score: float


class Reader:
    """rapidocr with its default settings, all in this process."""

    def __init__(self) -> None:
        self._ocr: Any = RapidOCR()

    def read(self, page: Path) -> list[Line]:
        """Returns the lines of a page, from top to bottom."""
        return _lines(self._ocr(str(page))[0])

    def queued(self, client: Client, check: Callable[[], None]) -> QueuedReader:
        """A reader with the same settings, whose inference goes through the queue."""
        return QueuedReader(self._ocr, client, check)


class QueuedReader:
    """rapidocr's own pre- and postprocessing, and none of its sessions. One thread may use it."""

    def __init__(self, plain: Any, client: Client, check: Callable[[], None]) -> None:
        def session(model: str, replaced: Any) -> QueueSession:
            return QueueSession(client, model, replaced.get_output_names()[0], check)

        self._ocr = copy.copy(plain)
        self._ocr.text_det = copy.copy(plain.text_det)
        self._ocr.text_det.infer = session(repository.DET, plain.text_det.infer)
        classify = session(repository.CLS, plain.text_cls.infer)
        self._ocr.text_cls = QueuedClassifier(plain.text_cls, "infer", classify)
        recognise = session(repository.REC, plain.text_rec.session)
        self._ocr.text_rec = QueuedRecogniser(plain.text_rec, "session", recognise)

    def read(self, page: Path) -> list[Line]:
        """Returns the lines of a page, from top to bottom."""
        return _lines(self._ocr(str(page))[0])


def _lines(found: list[Any] | None) -> list[Line]:
    return [
        Line(tuple((float(x), float(y)) for x, y in box), text, float(score))
        for box, text, score in found or []
    ]
