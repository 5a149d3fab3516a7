"""Build lock: of all processes and threads that want one plan, one builds it."""

from __future__ import annotations

import fcntl
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

logger = logging.getLogger(__name__)

POLL_S = 0.2
REPORT_S = 30.0


@contextmanager
def build_lock(path: Path, what: str) -> Iterator[None]:
    """Holds the lock file ``path``; waits, and says so, while another holds it.

    The file stays when the lock is given up: whoever removed it could let two holders in. The system gives
    the lock up for a process that dies.

    Args:
        path: in a folder that can be written to.
        what: what is built, for the log.

    Raises:
        OSError: the file cannot be opened, or its file system has no locks.
    """
    with path.open("ab") as file:
        began = time.perf_counter()
        reported = -REPORT_S
        while not _try(file.fileno()):
            waited = time.perf_counter() - began
            if waited - reported >= REPORT_S:
                reported = waited
                logger.info("%s: another worker is building it; waiting since %.0f s", what, waited)
            time.sleep(POLL_S)
        try:
            yield
        finally:
            fcntl.flock(file, fcntl.LOCK_UN)


def _try(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
