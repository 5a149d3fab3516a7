"""Reading the end of a log."""

from __future__ import annotations

import os
from pathlib import Path

LINE_BYTES = 500


def tail(path: Path, lines: int = 50) -> str:
    """Returns about the last ``lines`` lines of a file, or an empty text if it cannot be read."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - lines * LINE_BYTES))
            text = file.read().decode(errors="replace")
    except OSError:
        return ""
    return "\n".join(text.splitlines()[-lines:])
