"""Writes the corpus that a run starts from: ``python ops/fuzz/seeds.py``; findings are added by hand."""

from __future__ import annotations

import base64
import json
import sys
import zlib
from pathlib import Path

import msgpack
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))

from ops.fuzz.targets import ABSENT, MODEL, SIGNATURE

from tensorq import wire
from tensorq.models import ModelInfo, ModelState
from tensorq.submission import Limits

CORPUS = Path(__file__).with_name("corpus")


def payloads() -> dict[str, bytes]:
    """Payloads as `pack` and as others write them, and some that are none."""
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    good = wire.pack({"x": x})

    def by_hand(**changes: object) -> bytes:
        entry = {b"nd": True, b"type": "<f4", b"kind": b"", b"shape": [2, 3], b"data": x.tobytes()}
        entry |= {name.encode(): value for name, value in changes.items()}
        return bytes(msgpack.packb({"v": 1, "tensors": {"x": entry}}))

    return {
        "one": good,
        "several": wire.pack({"a": np.ones((1, 2), np.int64), "b": np.zeros((0,), np.bool_), "c": x[:1]}),
        "scalar": wire.pack({"s": np.array(1.5)}),
        "complex": wire.pack({"z": np.ones((2,), np.complex128)}),
        "by-hand": by_hand(),
        "object": by_hand(kind=b"O", type=b"O"),
        "record": by_hand(type=[["a", "<f4"]]),
        "negative": by_hand(shape=[-1, 3]),
        "overflow": by_hand(shape=[2**31, 2**31, 2**31]),
        "zero-times-huge": by_hand(shape=[0, 2**62], data=b""),
        "truncated": good[:-3],
        "long-string": b"\xdb\xff\xff\xff\xff",
        "deep": b"\x81" + b"\x91" * 60,
        "nan-key": bytes(msgpack.packb({float("nan"): 1})),
        "extension": bytes(msgpack.packb(msgpack.ExtType(5, b"x"))),
        "timestamp": b"\xd6\xff\x00\x00\x00\x00",
        "bad-name": bytes(msgpack.packb({"v": 1, "tensors": {"\udc80": {}}}, unicode_errors="surrogatepass")),
    }


def claims() -> dict[str, bytes]:
    """Job hashes: of our client, of its options, of a function job, and of somebody's hand."""
    packed = wire.pack({"x": np.ones((1, 2), np.float32)})
    plain = [
        b"queued",
        MODEL.encode(),
        b"1",
        b"%d" % len(packed),
        b"c",
        b"1790000000000",
        b"180",
        b"1",
        ABSENT,
    ]
    rare = [b"1", b"1790000000000", b"500", *[ABSENT] * 4, b"3", b"60", b""]
    huge = b"9" * 400
    hashes = {
        "plain": [b"job", b"ok", packed, *plain],
        "rare": [b"job", b"alone", packed, *plain[:7], ABSENT, b"", *rare],
        "function": [b"job", b"foreign", ABSENT, b"queued", *[ABSENT] * 18],
        "no-payload": [b"job", b"ok", ABSENT, *plain],
        "huge": [b"job", b"ok", packed, b"queued", MODEL.encode(), *[huge] * 17],
        "not-numbers": [
            b"job",
            b"ok",
            packed,
            b"queued",
            MODEL.encode(),
            *[b"1e3", b"-", b"0x7", b"nan"] * 4,
        ],
        "other-model": [b"job", b"ok", packed, b"queued", b"\xff../..", *plain[2:]],
        "nothing": [],
    }
    return {name: b"\n".join(parts) for name, parts in hashes.items()}


def publications() -> dict[str, bytes]:
    """Publications of workers, and JSON that only looks like one."""
    full = ModelInfo(MODEL, SIGNATURE, (1, 8), "tensorrt", Limits(100, 10**9), ModelState.FAILED, "why")

    def with_(**changes: object) -> bytes:
        return json.dumps(json.loads(full.to_json()) | changes).encode()

    signature = SIGNATURE.to_dict()
    return {
        "full": full.to_json().encode(),
        "bare": ModelInfo(MODEL, state=ModelState.IDLE).to_json().encode(),
        "infinite-ladder": with_(ladder=[float("inf")]),
        "zero-limit": with_(limits={"max_jobs": 0, "max_bytes": None}),
        "text-limit": with_(limits={"max_jobs": "7", "max_bytes": None}),
        "no-dtype": with_(signature=signature | {"inputs": [{"name": "x", "dtype": "?!", "shape": [1]}]}),
        "no-inputs": with_(signature=signature | {"inputs": []}),
        "no-axes": with_(signature=signature | {"inputs": [{"name": "x", "dtype": "int8", "shape": []}]}),
        "odd-axes": with_(
            signature=signature | {"inputs": [{"name": "x", "dtype": "int8", "shape": [None, {}]}]}
        ),
        "odd-batch-axis": with_(signature=signature | {"batch_axis": "0"}),
        "surrogate": with_(reason="\ud800"),
        "deep": b'{"v":1,"name":' + b"[" * 5_000,
    }


def reasons() -> dict[str, bytes]:
    """Texts of failures, compressed as RQ does, and what cannot be read."""

    def stored(text: bytes) -> bytes:
        return base64.b64encode(zlib.compress(text))

    trace = (
        b'Traceback (most recent call last):\n  File "a.py", line 1\n    x\ntensorq.errors.WireError: no\n'
    )
    return {
        "traceback": stored(trace),
        "empty": stored(b""),
        "not-utf8": stored(b"\xff\xfe"),
        "bomb": stored(b"a" * 2**22),
        "not-base64": b"!",
        "not-zlib": base64.b64encode(b"abc"),
    }


def main() -> None:
    makers = {"payload": payloads, "claim": claims, "publication": publications, "reason": reasons}
    for target, make in makers.items():
        folder = CORPUS / target
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in make().items():
            (folder / name).write_bytes(data)


if __name__ == "__main__":
    main()
