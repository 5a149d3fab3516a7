"""A problem: one thing that is wrong with a model's files, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake.

    Attributes:
        file: the file or folder to change.
        key: the place in it, such as ``profile[0].x.min`` or ``line 3``; empty for the file as a whole.
        message: what came and what was expected.
        remedy: what to do.
    """

    file: str
    key: str
    message: str
    remedy: str

    def __str__(self) -> str:
        return ": ".join(filter(None, (self.file, self.key, self.message))) + f"; {self.remedy}"


def suggest(word: str, known: Iterable[str]) -> str:
    """Returns ``did you mean 'WORD'?`` for the nearest of ``known``, else the list of them."""
    known = list(known)
    if near := get_close_matches(word, known, n=1):
        return f"did you mean {near[0]!r}?"
    return f"use one of: {', '.join(known)}" if known else "remove it"
