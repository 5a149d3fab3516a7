"""Each thing that a plan depends on, changed where a user would change it: the plan is not found again."""

from types import SimpleNamespace

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from models import catalogue
from tensorq_engines.tensorrt.builder.calibration.calibrate import calibrate
from tensorq_engines.tensorrt.builder.order import place_order
from tensorq_engines.tensorrt.cuda.device import Device
from tensorq_engines.tensorrt.flavour import Flavour

F32 = TensorProto.FLOAT
H200 = Device(0, "NVIDIA H200", "9.0", 1 << 37, True)
PROFILE = "[[profile]]\nx = {{ min = [1, 128], opt = [{0}, 128], max = [32, 128] }}\n"


@pytest.fixture
def key(write, flavour):
    def of(settings="", model=None, device=H200, flavour=flavour):
        return place_order(write(model, settings), flavour, device).recipe.key

    return of


def test_the_same_gives_the_same(key):
    assert key() == key()


@pytest.mark.parametrize(
    "settings",
    [
        "precision = 'fp16'",
        "precision = 'bf16'",
        "batch_axis = 0",
        PROFILE.format(4),
        "tensorrt.profiles = 'ladder'",
        "tensorrt.optimization_level = 1",
        "tensorrt.workspace_mib = 64",
        "tensorrt.tf32 = false",
        "tensorrt.detailed_layers = true",
        "inputs.x.wire = 'uint8'",
    ],
)
def test_settings_that_a_plan_depends_on_miss(key, settings):
    assert key(settings) != key()


@pytest.mark.parametrize("settings", ["batching.max_delay_ms = 9", "residency.pin = true", "engine = 'auto'"])
def test_settings_that_a_plan_does_not_depend_on_hit(key, settings):
    assert key(settings) == key()


def test_a_profile_written_out_as_it_would_be_derived_hits(key):
    assert key(PROFILE.format(8)) == key()


@pytest.mark.parametrize("change", ["scale = 2", "mean = 3"])
def test_another_normalisation_misses(key, change):
    wire = "[inputs.x]\nwire = 'uint8'\n"
    assert key(wire + change) != key(wire)


def test_another_model_misses(key):
    model = catalogue.mlp()
    model.graph.initializer[0].raw_data = bytes(len(model.graph.initializer[0].raw_data))
    assert key(model=model) != key()


def test_other_external_data_misses(write, flavour):
    entry = write()
    onnx.save(catalogue.mlp(), str(entry.source), save_as_external_data=True, location="w", size_threshold=0)
    before = place_order(entry, flavour, None).recipe.key
    weights = entry.folder / "w"
    weights.write_bytes(bytes(weights.stat().st_size))
    assert place_order(entry, flavour, None).recipe.key != before


def constant():
    """y = x + k, k a constant whose value lies in a file."""
    nodes = [
        helper.make_node("Constant", [], ["k"], value=kept_outside("k")),
        helper.make_node("Add", ["x", "k"], ["y"]),
    ]
    return catalogue.build(nodes, {"x": (F32, ["N", 4])}, {"y": (F32, ["N", 4])})


def branches():
    """y = x + k, k a weight of both branches of an If, whose value lies in a file."""
    body = helper.make_graph(
        [helper.make_node("Add", ["x", "k"], ["sum"])],
        "body",
        [],
        [helper.make_tensor_value_info("sum", F32, None)],
        [kept_outside("k")],
    )
    nodes = [helper.make_node("If", ["yes"], ["y"], then_branch=body, else_branch=body)]
    return catalogue.build(nodes, {"x": (F32, ["N", 4])}, {"y": (F32, ["N", 4])}, {"yes": np.array(True)})


def kept_outside(name):
    tensor = TensorProto(name=name, data_type=F32, dims=[4], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value=name)
    return tensor


@pytest.mark.parametrize("model", [constant, branches])
def test_other_external_data_misses_wherever_the_graph_reads_it(write, flavour, model):
    entry = write(model())
    weights = entry.folder / "k"
    weights.write_bytes(np.zeros(4, np.float32).tobytes())
    before = place_order(entry, flavour, None).recipe.key
    weights.write_bytes(np.ones(4, np.float32).tobytes())
    assert place_order(entry, flavour, None).recipe.key != before


def test_another_device_misses(key):
    other = Device(0, "NVIDIA H100", "9.0", 1 << 37, True)
    older = Device(0, "NVIDIA H200", "8.9", 1 << 37, True)
    assert len({key(), key(device=other), key(device=older), key(device=None)}) == 4


def test_another_tensorrt_misses(key, flavour):
    def fake(name, version, *flags):
        members = dict.fromkeys(("TF32", *flags), 0)
        module = SimpleNamespace(BuilderFlag=SimpleNamespace(__members__=members))
        return SimpleNamespace(name=name, version_text=version, module=module)

    keys = [
        key(flavour=fake("tensorrt", "10.3")),
        key(flavour=fake("tensorrt", "10.4")),
        key(flavour=fake("tensorrt_rtx", "10.4")),
    ]
    assert len(set(keys)) == 3
    assert isinstance(flavour, Flavour)


def test_another_converter_version_misses(key, monkeypatch):
    before = key("precision = 'fp16'")
    monkeypatch.setattr("onnxruntime.__version__", "0.0.1")
    assert key("precision = 'fp16'") != before


@pytest.mark.parametrize("which", ["axes.AXES_VERSION", "wire.WIRE_VERSION"])
def test_another_version_of_a_rewrite_misses(key, monkeypatch, which):
    settings = "inputs.x.wire = 'uint8'"
    before = key(settings)
    monkeypatch.setattr(f"tensorq_engines.tensorrt.builder.rewrite.graph.{which.split('.')[1]}", 99)
    assert key(settings) != before


def test_other_plugins_miss(key, write):
    folder = write().folder
    (folder / "p.so").write_bytes(b"one")
    before = key("tensorrt.plugins = ['p.so']")
    (folder / "p.so").write_bytes(b"two")
    assert len({before, key("tensorrt.plugins = ['p.so']"), key()}) == 3


def test_another_calibration_misses(write, flavour, tmp_path):
    entry = write(settings="precision = 'int8'")
    keys = set()
    for scale in (1, 100):
        np.savez(tmp_path / "data.npz", x=np.ones((4, 128), np.float32) * scale)
        calibrate(entry, [tmp_path / "data.npz"])
        keys.add(place_order(entry, flavour, None).recipe.key)
    assert len(keys) == 2


@pytest.mark.parametrize("which", ["system", "machine"])
def test_another_platform_misses(key, monkeypatch, which):
    before = key()
    monkeypatch.setattr(f"platform.{which}", lambda: "other")
    assert key() != before
