"""What is fuzzed: bytes from Redis in, a value or the declared error out. Anything else is a finding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tensorq import wire
from tensorq.errors import InputError, WireError
from tensorq.failure import job_failed
from tensorq.models import ModelInfo
from tensorq.signature import Signature, TensorSpec
from tensorq_worker.broker import Claimed
from tensorq_worker.errors import DeadlineExceeded
from tensorq_worker.intake import Intake
from tensorq_worker.loop.launcher import refuse_late

MODEL = "net"
SIGNATURE = Signature((TensorSpec("x", "float32", ("n", "w")),), (TensorSpec("y", "float32", ("n", "w")),))
PLAIN_FIELDS, ALL_FIELDS = 9, 19
ABSENT = b"~"


def payload(data: bytes) -> None:
    """The wire decoder: arrays that survive the way there and back, or a `WireError`."""
    try:
        tensors = wire.unpack(data)
    except WireError:
        return
    again = wire.unpack(wire.pack(tensors))
    assert list(again) == list(tensors)
    for name, array in tensors.items():
        assert array.nbytes <= len(data)
        assert array.tobytes() == again[name].tobytes()
        assert (array.shape, array.dtype) == (again[name].shape, again[name].dtype)


def claim(data: bytes) -> None:
    """A job hash as claim.lua hands it on, and what the worker makes of it before it runs anything.

    Lines are the reply's parts: id, status word, payload, then fields of the hash; ``~`` stands for one that
    Redis does not have.
    """
    parts = [None if part == ABSENT else part for part in data.split(b"\n")]
    job_id, word, packed, *fields = [*parts, *[None] * 3][: max(3, len(parts))]
    count = PLAIN_FIELDS if len(fields) <= PLAIN_FIELDS else ALL_FIELDS
    fields = [*fields, *[None] * count][:count]
    # The script hands on ids of ASCII alone, and nothing from a queue that this worker does not serve.
    ascii_id = bytes(byte & 0x7F for byte in job_id or b"")
    job = Claimed.from_reply([ascii_id, MODEL.encode(), b"0" * 32, word or b"ok", packed, fields])
    for number in (
        job.size_bytes,
        job.at_ms,
        job.timeout_s,
        job.deadline_ms,
        job.result_ttl_s or 0,
        job.crashes,
    ):
        assert abs(number) < 2**53
    try:
        refuse_late(job)
        run = _INTAKE.accept(job)
    except (WireError, InputError, DeadlineExceeded):
        return
    assert run.rows == run.tensors["x"].shape[0] > 0


def publication(data: bytes) -> None:
    """What a worker publishes of a model, and what a client makes of it."""
    try:
        info = ModelInfo.from_json(data)
    except WireError:
        return
    assert ModelInfo.from_json(info.to_json()) == info
    info.limits.over(info.limits)
    if info.signature is not None:
        for spec in (*info.signature.inputs, *info.signature.outputs):
            str(spec)
        tensors = {spec.name: np.zeros(1, np.float32) for spec in info.signature.inputs}
        try:
            info.signature.rows(info.signature.conform(tensors))
        except InputError:
            return


def reason(data: bytes) -> None:
    """The text of a failure, as RQ's result stream has it: an error for the user, always."""
    error = job_failed("job", data)
    assert len(error.detail) <= 2**20 + 200


_INTAKE = Intake(MODEL, SIGNATURE)
TARGETS: dict[str, Callable[[bytes], Any]] = {
    target.__name__: target for target in (payload, claim, publication, reason)
}
