"""Decoding msgpack from anyone, with little time and memory whatever the bytes are."""

from __future__ import annotations

from typing import Any

import msgpack

from tensorq.errors import WireError

MAX_CONTAINERS = 512


def decode(payload: bytes, *, max_map: int, max_array: int) -> Any:
    """Decodes one message.

    Args:
        payload: what came.
        max_map: most entries of a map.
        max_array: most elements of an array.

    Raises:
        WireError: it is not msgpack, has extension types, or holds more or larger maps or arrays than that.
    """
    containers = 0

    def counted(container: Any) -> Any:
        # An empty map is one byte in the payload and 64 in memory.
        nonlocal containers
        containers += 1
        if containers > MAX_CONTAINERS:
            raise ValueError(f"more than {MAX_CONTAINERS} maps and arrays")
        return container

    try:
        return msgpack.unpackb(
            payload,
            raw=False,
            strict_map_key=False,
            max_map_len=max_map,
            max_array_len=max_array,
            max_ext_len=0,
            object_hook=counted,
            list_hook=counted,
        )
    except Exception as exc:
        # msgpack raises ValueError, its own classes, or what a hostile map key provokes (unhashable, NaN).
        raise WireError(f"not a payload: {_first_line(exc)}") from exc


def _first_line(exc: Exception) -> str:
    return (str(exc).splitlines() or [""])[0][:120] or type(exc).__name__
