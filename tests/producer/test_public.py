import pickle
import subprocess
import sys

import pytest

import tensorq
from tensorq import (
    InputError,
    JobCancelled,
    JobExpired,
    JobFailed,
    QueueFull,
    RedisUnavailable,
    ResultTimeout,
    TensorqError,
)
from tensorq.embedded import ServerDied


def test_every_public_name_is_there_and_documented() -> None:
    assert len(set(tensorq.__all__)) == len(tensorq.__all__)
    for name in tensorq.__all__:
        assert getattr(tensorq, name).__doc__, name


def test_errors_form_one_tree() -> None:
    errors = [
        value for value in vars(tensorq).values() if isinstance(value, type) and issubclass(value, Exception)
    ]
    assert tensorq.TensorqError in errors
    assert all(issubclass(error, tensorq.TensorqError) for error in errors)


@pytest.mark.parametrize("module", ["onnx", "onnxruntime", "tensorrt", "torch", "pydantic", "hypothesis"])
def test_importing_the_sdk_does_not_import(module: str) -> None:
    code = f"import sys, tensorq; sys.exit({module!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_making_a_client_does_not_contact_redis() -> None:
    with tensorq.Client("redis://nowhere.invalid:1"):
        pass


@pytest.mark.parametrize(
    "error",
    [
        InputError("wrong"),
        QueueFull("full", refused=[1]),
        RedisUnavailable("down"),
        JobCancelled("id-1", "cancelled"),
        JobExpired("id-1", "gone"),
        JobFailed("id-1", "failed", "ValueError", "Traceback"),
        ResultTimeout("id-1", "not yet"),
        ServerDied("died", "its log"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_cross_processes_whole(error: TensorqError) -> None:
    """A pool whose process raises what cannot be unpickled hangs."""
    try:
        raise error
    except TensorqError as raised:
        got = pickle.loads(pickle.dumps(raised))
    assert type(got) is type(error)
    assert (str(got), got.args, vars(got)) == (str(error), error.args, vars(error))
