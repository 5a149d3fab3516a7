"""The wire format: named tensors as one msgpack map.

    {"v": 1, "tensors": {NAME: {b"nd": true, b"type": "<f4", b"kind": b"", b"shape": [..], b"data": bytes}}}

Each array is the map that msgpack-numpy writes, so tools that know it read ours; C order, little endian.
An array's map may one day hold a reference instead of ``data``: today's decoder refuses it by name.

A payload is fixed bytes around the arrays' data, and those bytes depend on names, dtypes and shapes alone:
its `Layout`. Layouts are cached, so a job like the one before is packed by one join and unpacked by
comparing those bytes, with arrays that view the payload itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgpack
import numpy as np

from tensorq.bounded import decode
from tensorq.errors import InputError, WireError

VERSION = 1
MAX_TENSORS = 64
MAX_RANK = 32
MAX_NAME_BYTES = 512
MAX_PAYLOAD_BYTES = 512 * 1024 * 1024  # Redis's own limit of a string

# What numpy calls them. Long doubles are not among them: they differ from machine to machine.
DTYPES = frozenset(
    ["|b1", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8", "<f2", "<f4", "<f8", "<c8", "<c16"]
)

Entry = tuple[str, str, tuple[int, ...]]
_KEPT_LAYOUTS = 512
_SMALL_BYTES = 16 * 1024  # below, a copy is quicker than a view


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """Where the arrays lie in a payload.

    Attributes:
        entries: name, dtype (numpy's ``str`` form, little endian) and shape of each array.
        heads: the fixed bytes before each array's data.
        offsets: where each array's data starts, in bytes.
        dtypes: the arrays' dtypes.
        size_bytes: length of the whole payload.
    """

    entries: tuple[Entry, ...]
    heads: tuple[bytes, ...]
    offsets: tuple[int, ...]
    dtypes: tuple[np.dtype, ...]
    size_bytes: int

    def matches(self, payload: bytes) -> bool:
        """Tells whether ``payload`` has exactly this layout's fixed bytes and length."""
        if len(payload) != self.size_bytes:
            return False
        for head, offset in zip(self.heads, self.offsets, strict=True):
            if not payload.startswith(head, offset - len(head)):
                return False
        return True

    def view(self, payload: bytes) -> dict[str, np.ndarray]:
        """Arrays over ``payload``'s own memory, read-only; they keep it alive."""
        return {
            name: np.ndarray(shape, dtype, payload, offset)
            for (name, _, shape), dtype, offset in zip(self.entries, self.dtypes, self.offsets, strict=True)
        }


@lru_cache(maxsize=4096)
def layout_of(entries: tuple[Entry, ...]) -> Layout:
    """Returns the layout of a payload with these arrays.

    Args:
        entries: name, dtype string (``<f4``, ``|u1``, ...) and shape of each array, in order.

    Raises:
        WireError: too many tensors or axes, or the payload would exceed `MAX_PAYLOAD_BYTES`.
    """
    if len(entries) > MAX_TENSORS:
        raise WireError(f"{len(entries)} tensors in one payload: at most {MAX_TENSORS}")
    packer = msgpack.Packer(autoreset=False)
    packer.pack_map_header(2)
    packer.pack("v")
    packer.pack(VERSION)
    packer.pack("tensors")
    packer.pack_map_header(len(entries))
    heads, offsets, dtypes, position = [], [], [], 0
    for name, dtype, shape in entries:
        count = _count(name, dtype, shape)
        packer.pack(name)
        packer.pack_map_header(5)
        for key, value in ((b"nd", True), (b"type", dtype), (b"kind", b""), (b"shape", list(shape))):
            packer.pack(key)
            packer.pack(value)
        packer.pack(b"data")
        dtypes.append(np.dtype(dtype))
        nbytes = count * dtypes[-1].itemsize
        heads.append(packer.bytes() + _bin_header(nbytes))
        packer.reset()
        position += len(heads[-1])
        offsets.append(position)
        position += nbytes
    if not entries:
        raise WireError("a payload without tensors")
    if position > MAX_PAYLOAD_BYTES:
        raise WireError(f"payload of {position} bytes: at most {MAX_PAYLOAD_BYTES}")
    return Layout(entries, tuple(heads), tuple(offsets), tuple(dtypes), position)


def pack(tensors: Mapping[str, np.ndarray]) -> bytes:
    """Packs named arrays.

    Args:
        tensors: arrays of any shape, of bool, integer, float or complex dtype; other orders and big
            endian arrays are converted.

    Raises:
        InputError: a dtype that has no place on the wire (object, void, str, datetime).
        WireError: a limit is exceeded.
    """
    try:
        kinds = tuple([(name, a.dtype, a.shape, type(a)) for name, a in tensors.items()])
        layout = _packed.get(kinds)
    except (AttributeError, TypeError):
        kinds, layout = (), None
    if layout is None:
        arrays = [_plain(name, array) for name, array in tensors.items()]
        layout = layout_of(
            tuple((name, a.dtype.str, a.shape) for name, a in zip(tensors, arrays, strict=True))
        )
        if kinds and all(
            kind[1] is a.dtype and kind[3] is np.ndarray for a, kind in zip(arrays, kinds, strict=True)
        ):
            if len(_packed) >= _KEPT_LAYOUTS:
                _packed.clear()
            _packed[kinds] = layout
    else:
        arrays = list(tensors.values())
    parts: list[Any] = []
    for head, array in zip(layout.heads, arrays, strict=True):
        parts.append(head)
        small = array.nbytes <= _SMALL_BYTES or not array.flags.c_contiguous
        parts.append(array.tobytes() if small else array.data)
    return b"".join(parts)


# What `pack` has packed, by names, dtypes and shapes: dtypes that needed no conversion alone.
_packed: dict[tuple[tuple[str, np.dtype, tuple[int, ...], type], ...], Layout] = {}
# What `unpack` has seen, by length. Entries are immutable.
_seen: dict[int, Layout] = {}


def recognise(payload: bytes) -> Layout | None:
    """Returns the layout of a payload whose like was unpacked before, else None."""
    layout = _seen.get(len(payload))
    return layout if layout is not None and layout.matches(payload) else None


def unpack(payload: bytes, *, max_bytes: int = MAX_PAYLOAD_BYTES) -> dict[str, np.ndarray]:
    """Unpacks a payload into read-only arrays.

    Args:
        payload: what `pack`, or another writer of the same format, wrote.
        max_bytes: refuse a longer payload.

    Returns:
        Arrays that view ``payload`` where it is laid out as `pack` lays it out, else views of copies.

    Raises:
        WireError: it is not a payload; the message says what is wrong. Nothing else is raised, and no
            more memory is taken than a small multiple of ``len(payload)``.
    """
    if not isinstance(payload, bytes):
        payload = bytes(payload)  # the arrays must not change with someone's buffer
    layout = recognise(payload)
    if layout is not None and len(payload) <= max_bytes:
        return layout.view(payload)
    tensors = _unpack_checked(payload, max_bytes)
    entries = tuple((name, a.dtype.str, a.shape) for name, a in tensors.items())
    layout = layout_of(entries)
    if layout.matches(payload):
        if len(_seen) >= _KEPT_LAYOUTS:
            _seen.clear()
        _seen[len(payload)] = layout
    return tensors


def _plain(name: str, array: np.ndarray) -> np.ndarray:
    if not isinstance(array, np.ndarray):
        raise InputError(f"tensor {name!r}: got {type(array).__name__}, expected a numpy array")
    if not _is_name(name):
        raise InputError(f"tensor name {name!r}: expected text of 1 to {MAX_NAME_BYTES} bytes")
    if type(array) is not np.ndarray and np.ma.is_masked(array):
        raise InputError(f"tensor {name!r}: masked values cannot be sent; give them one with .filled(VALUE)")
    dtype = array.dtype
    if dtype.str not in DTYPES:
        # Not all of the others have an order of bytes.
        little = dtype.newbyteorder("<") if dtype.kind in "iufc" else dtype
        if little.str not in DTYPES:
            raise InputError(
                f"tensor {name!r}: dtype {dtype} cannot be sent; expected bool, int, float or complex of at "
                "most 64 bits a part"
            )
        array = array.astype(little)
    return array if array.flags.c_contiguous else np.ascontiguousarray(array)


def _is_name(name: object) -> bool:
    try:
        return isinstance(name, str) and 0 < len(name.encode()) <= MAX_NAME_BYTES
    except UnicodeEncodeError:
        return False


def _count(name: str, dtype: str, shape: tuple[int, ...]) -> int:
    # numpy bounds the lengths besides a zero, too.
    bound = math.prod(max(1, length) for length in shape)
    if len(shape) > MAX_RANK:
        raise WireError(f"tensor {name!r}: {len(shape)} axes, at most {MAX_RANK}")
    if bound * np.dtype(dtype).itemsize > MAX_PAYLOAD_BYTES:
        raise WireError(f"tensor {name!r}: shape {shape} of {dtype} exceeds {MAX_PAYLOAD_BYTES} bytes")
    return math.prod(shape)


def _bin_header(nbytes: int) -> bytes:
    """The msgpack header of ``nbytes`` of binary (bin 8, 16 or 32)."""
    if nbytes < 1 << 8:
        return b"\xc4" + nbytes.to_bytes(1, "big")
    if nbytes < 1 << 16:
        return b"\xc5" + nbytes.to_bytes(2, "big")
    return b"\xc6" + nbytes.to_bytes(4, "big")


def _unpack_checked(payload: bytes, max_bytes: int) -> dict[str, np.ndarray]:
    if len(payload) > max_bytes:
        raise WireError(f"payload of {len(payload)} bytes: at most {max_bytes}")
    message = decode(payload, max_map=MAX_TENSORS, max_array=MAX_RANK)
    if not isinstance(message, dict) or message.get("v") != VERSION or len(message) != 2:
        raise WireError(f"not a payload of version {VERSION}: {_brief(message)}")
    tensors = message.get("tensors")
    if not isinstance(tensors, dict) or not tensors:
        raise WireError("field 'tensors': expected a map with at least one tensor")
    return {_name(name): _array(name, entry) for name, entry in tensors.items()}


def _name(name: object) -> str:
    if not isinstance(name, str) or not _is_name(name):
        raise WireError(f"tensor name {_brief(name)}: expected text of 1 to {MAX_NAME_BYTES} bytes")
    return name


def _array(name: str, entry: object) -> np.ndarray:
    if not isinstance(entry, dict) or b"data" not in entry:
        raise WireError(f"tensor {name!r}: expected a map with b'data', got {_brief(entry)}")
    kind, dtype_text = entry.get(b"kind"), entry.get(b"type")
    shape, data = entry.get(b"shape"), entry[b"data"]
    if entry.get(b"nd") is not True or kind not in (b"", "") or not isinstance(dtype_text, str):
        raise WireError(f"tensor {name!r}: only plain arrays are accepted, not objects, records or scalars")
    if dtype_text not in DTYPES:
        raise WireError(f"tensor {name!r}: dtype {_brief(dtype_text)} is not a little-endian number or bool")
    if not isinstance(shape, list) or not all(type(n) is int and n >= 0 for n in shape):
        raise WireError(f"tensor {name!r}: shape {_brief(shape)}: expected a list of lengths >= 0")
    if not isinstance(data, bytes):
        raise WireError(f"tensor {name!r}: data is {type(data).__name__}, expected bytes")
    dtype = np.dtype(dtype_text)
    expected_bytes = _count(name, dtype_text, tuple(shape)) * dtype.itemsize
    if len(data) != expected_bytes:
        raise WireError(f"tensor {name!r}: {len(data)} bytes of data, shape {shape} needs {expected_bytes}")
    return np.frombuffer(data, dtype).reshape(shape)


def _brief(value: object) -> str:
    if isinstance(value, dict | list):
        return f"a {type(value).__name__} of {len(value)}"
    text = repr(value[:80] if isinstance(value, str | bytes) else value)
    return text if len(text) <= 80 else text[:77] + "..."
