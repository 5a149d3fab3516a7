"""tensorq's command line with a profiler on every thread: ``python -m ops.bench.profiled_worker FILE ARGS``.

Writes ``{thread: stats}`` at the end, with the stats and in the format of cProfile.
"""

from __future__ import annotations

import cProfile
import marshal
import sys
import threading
import time
from pathlib import Path
from types import FrameType
from typing import Any

# Imported beforehand, or importing them would top the main thread's list.
import onnxruntime  # noqa: F401

import tensorq_worker.worker  # noqa: F401
from tensorq_worker.cli import main as tensorq

found: dict[str, cProfile.Profile] = {}


def begin(*event: FrameType | str | Any) -> None:
    """Profiles the calling thread from here on, by its CPU time; takes the place of its profile function."""
    name = threading.current_thread().name
    found[name] = cProfile.Profile(time.thread_time)
    found[name].enable()


def main() -> None:
    file = Path(sys.argv.pop(1))
    threading.setprofile(begin)
    begin()
    try:
        tensorq()
    finally:
        found["MainThread"].disable()
        threading.setprofile(None)
        for profile in found.values():
            profile.snapshot_stats()
        file.write_bytes(marshal.dumps({name: profile.stats for name, profile in found.items()}))


if __name__ == "__main__":
    main()
