"""Real builds of small models with TensorRT-RTX, which needs no GPU to build."""

import subprocess
import sys
from types import SimpleNamespace

import onnx
import pytest

from models import catalogue
from tensorq_engines import BuildFailed, ModelLoadFailed, Profile
from tensorq_engines.tensorrt.builder import find_or_build

# The others have free axes besides the batch and are refused without a profile.
BUILT = sorted(set(catalogue.ALL) - {"affine", "free_axes"})


@pytest.mark.parametrize("name", BUILT)
def test_the_catalogue_builds(build, name):
    plan = build(catalogue.ALL[name]())
    sidecar = plan.sidecar
    assert sidecar.sha256
    assert sidecar.recipe[:16] in plan.path.name
    assert (sidecar.flavour, sidecar.compute_capability, sidecar.device_name) == ("tensorrt_rtx", "", "")


def test_the_sidecar_describes_the_plan(build):
    sidecar = build(catalogue.mlp(), name="dense").sidecar
    assert (sidecar.name, sidecar.precision) == ("dense", "fp32")
    assert sidecar.profiles == (Profile.of(x=([1, 128], [8, 128], [32, 128])),)
    assert [spec.name for spec in (*sidecar.signature.inputs, *sidecar.signature.outputs)] == ["x", "y"]
    assert sidecar.io_bytes == (32 * (128 + 16) * 4,)
    assert sidecar.weights_bytes >= (128 * 32 + 32 + 32 * 16 + 16) * 4
    assert sidecar.activation_bytes[0] > 0


def test_one_plan_holds_several_profiles(build):
    narrow = "[[profile]]\nx = { min = [1, 8], opt = [4, 16], max = [8, 32] }\n"
    wide = "[[profile]]\nx = { min = [1, 32], opt = [2, 64], max = [4, 128] }\n"
    sidecar = build(catalogue.affine(), narrow + wide).sidecar
    assert [profile.rows() for profile in sidecar.profiles] == [(1, 4, 8), (1, 2, 4)]
    assert len(sidecar.activation_bytes) == len(sidecar.io_bytes) == 2


def test_one_profile_for_each_size_of_the_ladder(build):
    sidecar = build(settings="tensorrt.profiles = 'ladder'").sidecar
    assert [profile.rows() for profile in sidecar.profiles] == [(1, 1, 1), (8, 8, 8), (32, 32, 32)]


@pytest.mark.parametrize("precision", ["fp16", "bf16"])
def test_half_precisions_halve_the_weights(build, precision):
    full, half = (build(settings=f"precision = '{item}'").sidecar for item in ("fp32", precision))
    assert half.weights_bytes < 0.7 * full.weights_bytes
    assert half.signature == full.signature


def test_options_are_taken(build):
    options = "optimization_level = 1\nworkspace_mib = 64\ntf32 = false\ndetailed_layers = true"
    assert build(settings=f"[tensorrt]\n{options}").read()


def test_a_model_with_external_data_builds(write, flavour):
    entry = write()
    onnx.save(catalogue.mlp(), str(entry.source), save_as_external_data=True, location="w", size_threshold=0)
    plan = find_or_build(entry, flavour, None)
    assert plan.sidecar.weights_bytes >= 4 * 128 * 32


def link(weights):
    weights.symlink_to(weights.rename(weights.with_name("w2")).name)


@pytest.mark.parametrize(
    "damage", [link, lambda weights: weights.write_bytes(b"short")], ids=["link", "short"]
)
def test_external_data_that_onnx_does_not_read_is_told(write, flavour, damage):
    entry = write()
    onnx.save(catalogue.mlp(), str(entry.source), save_as_external_data=True, location="w", size_threshold=0)
    damage(entry.folder / "w")
    with pytest.raises(BuildFailed, match=r"'m': .*model\.onnx cannot be read with its weights: "):
        find_or_build(entry, flavour, None)


def test_a_model_that_is_saved_with_external_data_after_a_rewrite_builds(build, monkeypatch):
    monkeypatch.setattr("tensorq_engines.tensorrt.builder.rewrite.graph.INLINE_BYTES", 0)
    assert build(settings="inputs.x.wire = 'uint8'").read()


def test_a_free_axis_without_a_profile_is_refused(build):
    with pytest.raises(BuildFailed, match=r"\[\[profile\]\]\nx = \{ min = \[1, 32\]"):
        build(catalogue.affine())


def test_a_profile_that_does_not_fit_is_refused_before_tensorrt_sees_it(build):
    with pytest.raises(ModelLoadFailed, match=r"model.toml: profile\[0\]\.x\.max: axis 1 is fixed at 128"):
        build(settings="[[profile]]\nx = { min = [1, 128], opt = [8, 128], max = [32, 256] }")


def test_operators_that_tensorrt_lacks_are_told_node_by_node(build):
    model = catalogue.compress()
    model.graph.node[1].name = "odd one"
    profile = "[[profile]]\nkeep = { min = [1], opt = [2], max = [8] }"
    with pytest.raises(BuildFailed) as caught:
        build(model, profile)
    text = str(caught.value)
    assert "model 'm': tensorrt_rtx" in text
    assert "(opset ai.onnx 17)" in text
    assert "node 1 Compress 'odd one': unsupported node" in text
    assert "choose engine 'onnxruntime'" in text


def test_an_unknown_operator_is_told_in_the_parsers_words(build):
    model = catalogue.mlp()
    model.graph.node[0].op_type = "Mystery"
    with pytest.raises(BuildFailed, match=r"node 0 Mystery -> 'h1': .*Plugin not found"):
        build(model)


def test_a_build_that_gives_nothing_is_told_in_the_loggers_words(build, monkeypatch):
    monkeypatch.setattr("tensorq_engines.tensorrt.builder.config._add_profile", lambda *_: None)
    with pytest.raises(BuildFailed, match=r"cannot build it: .*no optimization profile has been defined"):
        build()


def test_an_input_that_is_read_as_a_shape_is_refused(build):
    node = onnx.helper.make_node("Reshape", ["x", "shape"], ["y"])
    inputs = {"x": (1, ["N", 4]), "shape": (7, [2])}
    model = catalogue.build([node], inputs, {"y": (1, ["A", "B"])})
    with pytest.raises(BuildFailed, match="input 'shape' is read as a shape"):
        build(model, "[[profile]]\nx = { min = [1, 4], opt = [2, 4], max = [8, 4] }")


def test_a_file_that_is_no_model_is_refused(write, flavour):
    entry = write()
    entry.source.write_bytes(b"not onnx")
    with pytest.raises(ModelLoadFailed, match=r"'m': .*is not an ONNX model"):
        find_or_build(entry, flavour, None)


def test_a_plan_as_source_is_refused(write, flavour):
    entry = write()
    (entry.folder / "model.plan").write_bytes(b"plan")
    with pytest.raises(ModelLoadFailed, match=r"got model\.plan, expected an \.onnx file"):
        find_or_build(write(settings="source = 'model.plan'"), flavour, None)


@pytest.mark.parametrize("name", ["gone.so", "../m.so", "/etc/hostname"])
def test_a_plugin_library_that_is_not_in_the_folder_is_refused(build, name):
    with pytest.raises(BuildFailed, match=r"tensorrt\.plugins in model\.toml names"):
        build(settings=f"tensorrt.plugins = ['{name}']")


def test_a_plugin_library_that_is_none_is_refused(write, flavour):
    (write().folder / "p.so").write_bytes(b"not a library")
    with pytest.raises(BuildFailed, match=r"p\.so cannot be loaded as a plugin library"):
        find_or_build(write(settings="tensorrt.plugins = ['p.so']"), flavour, None)


def test_tensorrt_proper_is_not_started_without_a_gpu(write):
    flags = SimpleNamespace(__members__={"FP16": 0})
    fake = SimpleNamespace(
        name="tensorrt", version_text="8.6.1", module=SimpleNamespace(BuilderFlag=flags), log=None
    )
    with pytest.raises(BuildFailed, match=r"builds plans on the GPU .* and there is none"):
        find_or_build(write(), fake, None)


def test_importing_the_builder_loads_no_runtime():
    script = (
        "import sys, tensorq_engines.tensorrt.builder\n"
        "heavy = {'onnx', 'onnxruntime', 'tensorrt', 'tensorrt_rtx', 'cuda'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
