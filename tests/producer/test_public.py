import subprocess
import sys

import pytest

import tensorq


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
