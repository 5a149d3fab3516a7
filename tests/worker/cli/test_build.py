"""`tensorq build` and `tensorq calibrate`, with TensorRT-RTX."""

import os

import numpy as np
import pytest

from models import catalogue
from tensorq_engines.tensorrt import flavour as flavours


@pytest.fixture(autouse=True)
def tensorrt_rtx(tmp_path, monkeypatch):
    if "tensorrt_rtx" not in flavours.installed() and "CI" not in os.environ:
        pytest.skip("tensorrt-rtx-cu13 is not installed")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def write(tmp_path):
    def one(model=None, settings=None):
        root = tmp_path / f"repository-{len(list(tmp_path.iterdir()))}"
        return catalogue.write_repository(root, {"m": (model or catalogue.mlp(), settings)}) / "m"

    return one


def test_build_tells_what_was_built_and_where(tensorq, write):
    folder = write(settings="precision = 'fp16'")
    result = tensorq("build", folder, "--flavour", "tensorrt_rtx")
    assert result.exit_code == 0, result.output
    for words in (
        "m: tensorrt_rtx ",
        "no GPU, fp16",
        "ladder   1, 8, 32",
        "x min [1, 128] opt [8, 128] max [32, 128]: activations",
        f"plan     {folder}/.tensorq/tensorrt_rtx-",
        "built    in",
    ):
        assert words in result.stdout
    assert "found    in" in tensorq("build", folder).stdout
    assert "built    in" in tensorq("build", folder, "--force", "--verbose").stdout


def test_a_model_of_fixed_shapes_has_a_profile_without_ranges(tensorq, write):
    result = tensorq("build", write(catalogue.fixed_batch()))
    assert "ladder   4\n  profile  fixed shapes: " in result.stdout


def test_a_refusal_keeps_its_lines_and_has_no_traceback(tensorq, write):
    result = tensorq("build", write(catalogue.affine()))
    assert result.exit_code == 1
    assert "build: model 'm': input x: float32[N, W] is free on axis 1" in result.stderr
    assert "\n[[profile]]\nx = { min = [1, 32]" in result.stderr
    assert "Traceback" not in result.output


def test_a_folder_that_is_no_model_is_told(tensorq, tmp_path):
    result = tensorq("build", tmp_path / "gone" / "m")
    assert (result.exit_code, "cannot be read" in result.stderr) == (os.EX_CONFIG, True)


def test_calibrate_then_build(tensorq, write, tmp_path):
    folder = write(settings="precision = 'int8'")
    assert f"run `tensorq calibrate {folder} DATA.npz`" in tensorq("build", folder).stderr
    np.savez(tmp_path / "data.npz", x=np.random.default_rng(1).standard_normal((64, 128), np.float32))
    result = tensorq("calibrate", folder, tmp_path / "data.npz")
    assert result.stdout == f"m: 64 rows seen, {folder / 'model.int8.onnx'} written\n"
    assert "int8\n" in tensorq("build", folder).stdout


def test_calibrate_says_when_the_model_does_not_ask_for_int8(tensorq, write, tmp_path):
    np.savez(tmp_path / "data.npz", x=np.ones((2, 128), np.float32))
    result = tensorq("calibrate", write(), tmp_path / "data.npz")
    assert result.stdout.endswith("model.toml does not ask for it yet: write precision = 'int8'\n")


def test_data_that_is_refused_is_told_with_its_file(tensorq, write, tmp_path):
    result = tensorq("calibrate", write(), tmp_path / "gone.npz")
    assert result.exit_code == 1
    assert "gone.npz is no calibration data" in result.stderr
