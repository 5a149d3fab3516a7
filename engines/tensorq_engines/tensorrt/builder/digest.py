"""Digests of the files that a plan is made from."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path

from tensorq_engines.base.digest import file_digest


def model_digest(source: Path, locations: Iterable[str]) -> str:
    """Returns the sha256, in hex, of an ONNX file and of its external data.

    Args:
        source: the ONNX file.
        locations: its external data files, relative to the file's folder; their order does not matter.

    Raises:
        OSError: a file cannot be read.
    """
    total = hashlib.sha256(file_digest(source).encode())
    for location in sorted(set(locations)):
        total.update(f"\0{location}\0{file_digest(source.parent / location)}".encode())
    return total.hexdigest()
