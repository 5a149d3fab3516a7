"""What one process has one of: the lock under which TensorRT's engines, contexts and memory change."""

from __future__ import annotations

import ctypes
import threading
from typing import Any

CHANGES = threading.RLock()
"""Held over capture, load, close, context creation and regrowth, by whatever thread.

TensorRT deserializes without the GIL and reads the Python buffer meanwhile, and a capture must not meet an
engine or memory that goes away under it. Replay and eager runs do not hold it.
"""


def keep_for_good(thing: Any) -> None:
    """Keeps an object from ever being destroyed, interpreter shutdown included.

    The logger and the runtime live as long as the process, and after a CUDA error that sticks destroying an
    engine or a context would crash.
    """
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))
