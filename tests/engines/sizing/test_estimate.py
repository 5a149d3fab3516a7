"""Estimates, and that what is said of their accuracy is what they are."""

import json
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

from models import catalogue, networks
from tensorq_engines import ModelLoadFailed, Profile
from tensorq_engines.onnx_model.header import read_header
from tensorq_engines.sizing import accuracy
from tensorq_engines.sizing.estimate import Build, estimate_plan, estimate_tile

ROOT = Path(__file__).parents[3]
PACKAGED = ROOT / "engines" / "tensorq_engines" / "sizing" / accuracy.FILE
PLANS = json.loads(PACKAGED.read_text("utf-8"))["plans"]
F32 = TensorProto.FLOAT
HALF = Build("fp16")


@pytest.fixture
def tile(tmp_path):
    """Estimates a tile of a model."""

    def one(model, build=HALF, **shapes):
        return estimate_tile(model, signature_of(tmp_path, model), shapes, build)

    return one


def signature_of(folder, model):
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return read_header(path).signature


@pytest.mark.parametrize(
    "plan",
    [plan for plan in PLANS if plan["model"] in networks.ALL],
    ids=lambda plan: f"{plan['model']}-{plan['precision']}-{plan['tensorrt']}",
)
def test_the_accuracy_that_is_told_is_that_of_this_code(tile, plan):
    shapes = {name: tuple(lengths) for name, lengths in plan["max"].items()}
    build = Build(plan["precision"], plan["optimization_level"])
    found = tile(networks.ALL[plan["model"]](), build, **shapes)
    assert found.arena_bytes == plan["estimated_activation_bytes"], "run `make bench-estimate`"
    assert found.io_bytes == plan["estimated_io_bytes"]
    assert round(found.arena_bytes / plan["activation_bytes"] - 1, 4) == plan["error"]


def test_what_is_packaged_is_the_newest_committed_result():
    newest = max((ROOT / "ops" / "bench" / "results").glob("estimate-errors-*.json"))
    assert PACKAGED.read_text("utf-8") == newest.read_text("utf-8")


def test_accuracy_is_the_range_of_errors_of_each_tensorrt():
    errors = {"a": (0.1, -0.25), "b": (0.0,)}
    records = [
        {"tensorrt": name, "where": "here", "error": error, "fitted": name == "a"}
        for name, found in errors.items()
        for error in found
    ]
    first, second = map(str, accuracy.summarize(records))
    assert first == "activations -25% to +10% off in 2 plans of a, here, by which its rules were chosen"
    assert second == "activations +0% to +0% off in 1 plans of b, here"


def test_plans_of_the_gpu_are_within_a_quarter_and_later_ones_within_two_fifths():
    chosen, later = [one for one in accuracy.known_accuracy() if one.where == "NVIDIA H200"]
    assert (chosen.plans, later.plans) == (7, 13)
    assert -0.25 < chosen.low <= chosen.high < 0.25
    assert -0.4 < later.low <= later.high < 0.4


def test_activations_grow_with_rows_and_half_precision_halves_them(tile):
    one, four = (tile(networks.tiny(), input=(rows, 3, 224, 224)).arena_bytes for rows in (8, 32))
    assert four == pytest.approx(4 * one, rel=1e-3)
    assert tile(networks.tiny(), Build("fp32"), input=(32, 3, 224, 224)).arena_bytes == 2 * four


def test_a_16_bit_image_has_eight_channels_at_least(tile):
    # A copy of three channels as eight, and the pooled tensor: its 16-bit twin beside the 32-bit output.
    nodes = [helper.make_node("GlobalAveragePool", ["x"], ["y"])]
    model = catalogue.build(nodes, {"x": (F32, ["N", 3, 64, 64])}, {"y": (F32, ["N", 3, 1, 1])})
    assert tile(model, x=(4, 3, 64, 64)).arena_bytes == 4 * 8 * 64 * 64 * 2 + 512
    assert tile(model, Build("fp32"), x=(4, 3, 64, 64)).arena_bytes == 0


def test_chains_need_kernels_that_low_optimization_levels_do_not_compile(tile):
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"]),
        helper.make_node("HardSigmoid", ["a"], ["b"]),
        helper.make_node("Mul", ["a", "b"], ["c"]),
        helper.make_node("GlobalAveragePool", ["c"], ["y"]),
    ]
    inputs, outputs = {"x": (F32, ["N", 8, 32, 32])}, {"y": (F32, ["N", 8, 1, 1])}
    model = catalogue.build(nodes, inputs, outputs, {"w": np.ones((8, 8, 1, 1), np.float32)})
    size = 2 * 8 * 32 * 32 * 4
    assert tile(model, Build("fp32", 3), x=(2, 8, 32, 32)).arena_bytes == 2 * size
    assert tile(model, Build("fp32", 2), x=(2, 8, 32, 32)).arena_bytes == 3 * size


def test_a_plan_has_the_largest_of_its_profiles_and_a_context_for_each(tmp_path):
    signature = signature_of(tmp_path, catalogue.mlp())
    profiles = [Profile.of(x=([rows, 128],) * 3) for rows in (1, 32)]
    found = estimate_plan(catalogue.mlp(), signature, profiles, HALF, 5).footprint
    assert found.io_bytes == found.pinned_bytes == 32 * (128 + 16) * 4
    assert (found.context_bytes, found.weights_bytes) == (10, 2 << 20)


def test_tensors_of_no_known_shape_are_counted(tile):
    nodes = [
        helper.make_node("Odd", ["x"], ["a"], domain="plugins"),
        helper.make_node("Relu", ["a"], ["b"]),
        helper.make_node("Softmax", ["b"], ["y"]),
    ]
    model = catalogue.build(nodes, {"x": (F32, ["N", 4])}, {"y": (F32, ["N", 4])})
    model.opset_import.append(helper.make_opsetid("plugins", 1))
    assert tile(model, x=(2, 4)).unknown == 2
    assert tile(catalogue.mlp(), x=(2, 128)).unknown == 0


def test_a_model_that_onnx_cannot_infer_over_is_refused(tmp_path):
    model = catalogue.affine()
    signature = signature_of(tmp_path, model)
    del model.opset_import[:]
    with pytest.raises(ModelLoadFailed, match="cannot infer"):
        estimate_tile(model, signature, {"x": (1, 4)}, HALF)
