"""Log: TensorRT's words, kept for the exception that a None or False becomes."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tensorq_engines.tensorrt.process import keep_for_good

log = logging.getLogger("tensorq.tensorrt")

KEPT = 8
# TensorRT's severities in order: internal error, error, warning, info, verbose. Errors become exceptions.
_LEVELS = (logging.WARNING, logging.WARNING, logging.INFO, logging.DEBUG)
_ERROR = 1
_INFO = 3


class Heard:
    """The errors that TensorRT reported while somebody listened."""

    def __init__(self) -> None:
        self._errors: list[str] = []

    def add(self, message: str) -> None:
        """Keeps a message; only the last few, and none twice in a row."""
        if self._errors[-1:] != [message]:
            self._errors.append(message)
            del self._errors[:-KEPT]

    def note(self, message: str) -> None:
        """Hears an informative message, and keeps nothing of it."""

    def __str__(self) -> str:
        return "; ".join(self._errors) or "TensorRT gave no reason"


class Log:
    """The one logger that TensorRT is given in this process.

    Attributes:
        native: the ``ILogger``.
    """

    def __init__(self, module: Any) -> None:
        self._listeners: tuple[Heard, ...] = ()
        self.native = _native(module, self._take)
        keep_for_good(self.native)

    @contextmanager
    def listen(self, heard: Heard | None = None) -> Iterator[Heard]:
        """Collects the errors that come meanwhile, from whatever thread, in ``heard`` or a new one."""
        heard = Heard() if heard is None else heard
        self._listeners = (*self._listeners, heard)
        try:
            yield heard
        finally:
            self._listeners = tuple(item for item in self._listeners if item is not heard)

    def _take(self, severity: int, message: str) -> None:
        if severity <= _ERROR:
            for heard in self._listeners:
                heard.add(message)
        elif severity == _INFO:
            for heard in self._listeners:
                heard.note(message)
        if severity < len(_LEVELS):
            log.log(_LEVELS[severity], "%s", message)


def _native(module: Any, take: Any) -> Any:
    class Native(module.ILogger):  # type: ignore[misc]
        def __init__(self) -> None:
            module.ILogger.__init__(self)

        def log(self, severity: Any, message: str) -> None:
            take(int(severity), message)

    return Native()
