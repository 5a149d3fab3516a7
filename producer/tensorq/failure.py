"""Why a job failed, from the text that RQ keeps: a traceback, compressed; nothing is ever unpickled."""

from __future__ import annotations

import binascii
import re
import zlib
from base64 import b64decode

from tensorq.errors import JobFailed

MAX_TEXT_BYTES = 1024 * 1024

_HEAD = re.compile(r"(?:[A-Za-z_]\w*\.)*([A-Za-z_]\w*)(?:: (.*))?", re.DOTALL)


def decode_text(exc_string: bytes) -> str:
    """The text in the ``exc_string`` of RQ's result stream; what cannot be read is said in its place."""
    try:
        text = zlib.decompressobj().decompress(b64decode(exc_string), MAX_TEXT_BYTES)
    except (zlib.error, binascii.Error) as exc:
        return f"(the reason that Redis holds cannot be read: {exc})"
    return text.decode(errors="replace")


def split_text(text: str) -> tuple[str, str]:
    """Splits the end of a traceback into the error's class name and its message.

    Returns:
        The name without its module, and the message, which may have several lines; ``("", text)``
        where the text does not end as a traceback does.
    """
    lines = text.strip("\n").split("\n")
    # The error's line is the first that is not indented below the innermost frame.
    start = max((n for n, line in enumerate(lines) if line.startswith("  File ")), default=-1) + 1
    while start < len(lines) - 1 and lines[start].startswith(" "):
        start += 1
    tail = "\n".join(lines[start:])
    match = _HEAD.fullmatch(tail)
    return (match[1], match[2] or "") if match else ("", tail)


def job_failed(job_id: str, exc_string: bytes | None) -> JobFailed:
    """The error for a failed job, from the newest entry of its result stream."""
    if exc_string is None:
        return JobFailed(job_id, f"job {job_id} failed, and RQ kept no reason; see the worker's log")
    detail = decode_text(exc_string)
    kind, message = split_text(detail)
    said = ": ".join(part for part in (kind, message) if part)
    return JobFailed(job_id, f"job {job_id} failed: {said}", kind, detail)
