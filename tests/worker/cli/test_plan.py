"""`tensorq plan`, which needs neither TensorRT nor a GPU."""

import json
import os
import subprocess
import sys

import pytest

from models import catalogue, networks

IMAGES = (
    'precision = "fp16"\n[[profile]]\n'
    "input = { min = [1, 3, 224, 224], opt = [8, 3, 224, 224], max = [32, 3, 224, 224] }\n"
)


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    root = tmp_path_factory.mktemp("models")
    return catalogue.write_repository(root, {name: (net(), IMAGES) for name, net in networks.ALL.items()})


def rows(text, head):
    """The lines of the table that starts with ``head``, as words."""
    lines = text.splitlines()
    start = next(index for index, line in enumerate(lines) if line.startswith(head))
    return [line.split() for line in lines[start + 1 :] if line][: len(lines)]


def test_a_model_has_a_line_for_each_largest_tile(tensorq, images):
    result = tensorq("plan", images / "mid", "--max-batch", "32,4", "--lanes", "1,3")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("mid: fp16, no plan yet\nMAX TILE ")
    four, own = (" ".join(line) for line in rows(result.stdout, "MAX TILE")[:2])
    assert four == "input 4x3x224x224 estimate 10.0 18.4 2.3 2.0 32.7 78.0 4.6"
    assert own == "input 32x3x224x224 * estimate 10.0 147.0 18.4 2.0 177.4 512.1 36.8"
    assert "activations -20% to +12% off in 7 plans of tensorrt 8.6.1, NVIDIA H200" in result.stdout


def test_models_fit_a_budget_with_one_arena_and_not_without(tensorq, images):
    names = ("mid", "resnet18")
    result = tensorq("plan", *names, "--models", images, "--budget", 240, "--max-batch", 32, "--lanes", 1)
    own = " ".join(rows(result.stdout, "ALL, MAX ROWS")[0])
    assert own == "own 1 34.0 4.0 18.5 147.0 203.5 2 of 2 220.5 277.0 1 of 2 37.0"
    said = (
        "own, 1 lane, private: in order, mid fit and resnet18 not; taking turns, at least 1 must be evicted"
    )
    assert said in result.stdout.splitlines()
    assert "one arena:" not in result.stdout


def test_json_is_in_bytes_and_adds_up(tensorq, images):
    result = tensorq("plan", "--models", images, "--max-batch", "8", "--lanes", 2, "--slots", 3, "--json")
    found = json.loads(result.stdout)
    assert [model["name"] for model in found["models"]] == ["mid", "resnet18", "tiny"]
    sizes = [model["sizes"][0] for model in found["models"]]
    assert all(size["max"] == {"input": [8, 3, 224, 224]} for size in sizes)
    own, eight = found["sets"]
    assert (own["rows"], eight["rows"], eight["lanes"]) == (None, 8, 2)
    assert eight["shared"]["arenas_bytes"] == 2 * max(size["arena_bytes"] for size in sizes)
    assert eight["private"]["arenas_bytes"] == 2 * sum(size["arena_bytes"] for size in sizes)
    assert eight["shared"]["pinned_bytes"] == 2 * 3 * max(size["pinned_bytes"] for size in sizes)
    assert found["estimates"][0]["plans"] == 7


def test_free_axes_are_given_by_symbol_or_by_shape(tensorq, tmp_path):
    catalogue.write_repository(tmp_path, {"free": (catalogue.free_axes(), None)})
    by_shape = tensorq("plan", tmp_path / "free", "--max-batch", "2", "--input", "x=3x8x8,3x16x16")
    by_symbol = tensorq("plan", tmp_path / "free", "--max-batch", "2", "--free", "H=8", "--free", "W=8,16")
    assert [line[1] for line in rows(by_shape.stdout, "MAX TILE")[:2]] == ["2x3x8x8", "2x3x16x16"]
    assert [line[1] for line in rows(by_symbol.stdout, "MAX TILE")[:2]] == ["2x3x8x8", "2x3x8x16"]
    refused = tensorq("plan", tmp_path / "free")
    assert (refused.exit_code, "give --input x=3x640x640" in refused.stderr) == (os.EX_CONFIG, True)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--max-batch", "4,none"], "got '4,none', expected whole numbers from 1, as in 2,4,8"),
        (["--budget", "nan"], "got nan, expected MiB from 0"),
        (["--budget", "inf"], "got inf, expected MiB from 0"),
        (["--budget", "1e308"], "got 1e+308, expected MiB from 0"),
        (["--budget", "-1"], "got -1, expected MiB from 0"),
        (["--lanes", "0"], "expected whole numbers from 1"),
        (["--free", "320"], "expected NAME=VALUES"),
        (["--input", "input=3xWx8"], "as in 2x4x8"),
    ],
)
def test_options_of_another_form_are_usage_errors(tensorq, images, arguments, words):
    result = tensorq("plan", images / "tiny", *arguments)
    assert (result.exit_code, words in result.stderr) == (2, True), result.stderr


def test_what_no_model_has_and_what_is_named_twice_are_told(tensorq, images):
    for arguments, words in (
        ((images / "tiny", "--free", "W=8"), "no model has free axis 'W'"),
        ((images / "tiny", "--input", "x=3x8x8"), "no model has input 'x'; there are: input"),
        ((images / "tiny", images / "tiny"), "got model 'tiny' twice"),
        ((images / "tint",), "there is no model 'tint'"),
    ):
        result = tensorq("plan", *arguments)
        assert (result.exit_code, words in result.stderr) == (os.EX_CONFIG, True), result.output
    assert tensorq("plan").exit_code == 2


def test_a_model_of_the_host_is_told_to_take_no_device_memory(tensorq, tmp_path):
    catalogue.write_repository(tmp_path, {"m": (catalogue.mlp(), "engine = 'onnxruntime'\n")})
    result = tensorq("plan", tmp_path / "m")
    assert "but model.toml asks for onnxruntime, which takes no device memory" in result.stdout


def test_no_runtime_is_loaded(images):
    code = (
        "import sys; from tensorq_worker.cli import main\n"
        f"main(['plan', {str(images / 'tiny')!r}], standalone_mode=False)\n"
        "print(sorted({'tensorrt', 'tensorrt_rtx', 'cuda'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("[]\n")
