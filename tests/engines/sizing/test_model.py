"""A model's sizes: its plan's own where there is one of the model as it is now."""

import hashlib
from dataclasses import replace

import pytest

from models import catalogue
from tensorq_engines import Footprint, ModelLoadFailed, Repository
from tensorq_engines.sizing.maxima import Wanted
from tensorq_engines.sizing.model import open_model, size_model
from tensorq_engines.tensorrt.builder.order import Target, write_recipe
from tensorq_engines.tensorrt.builder.precision import PrecisionMeans
from tensorq_engines.tensorrt.builder.source import read_source
from tensorq_engines.tensorrt.sidecar import Sidecar, sidecar_path

LADDER = 'precision = "fp16"\ntensorrt.profiles = "ladder"\n'
TARGET = Target("tensorrt", "10.3.0", "9.0", "NVIDIA H200")
FLAGS = PrecisionMeans(("FP16",))


@pytest.fixture
def entry(tmp_path, monkeypatch):
    """Writes the folder of a model, and returns its entry."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def one(model=None, settings=LADDER):
        folder = tmp_path / "m"
        folder.mkdir(exist_ok=True)
        (folder / "model.onnx").write_bytes((model or catalogue.mlp()).SerializeToString())
        (folder / "model.toml").write_text(settings)
        return Repository(tmp_path).get("m")

    return one


def pretend_built(entry, means=FLAGS):
    """Puts a plan of three profiles with its sidecar where the builder would."""
    source = read_source(entry)
    recipe = write_recipe(entry, source, means, TARGET)
    path = entry.folder / ".tensorq" / recipe.file_name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"plan")
    sidecar = Sidecar(
        name="m",
        signature=source.header.signature,
        profiles=recipe.profiles,
        activation_bytes=(100, 800, 3200),
        weights_bytes=7,
        io_bytes=(1, 8, 32),
        context_bytes=(5, 6, 7),
        flavour=TARGET.flavour,
        version_text=TARGET.version_text,
        compute_capability=TARGET.compute_capability,
        device_name=TARGET.device_name,
        precision=entry.settings.precision,
        recipe=recipe.key,
        sha256=hashlib.sha256(b"plan").hexdigest(),
    )
    sidecar_path(path).write_text(sidecar.to_json())
    return path


def bases(entry, batches=(8, 64)):
    sized = size_model(open_model(entry), Wanted(batches))
    return {size.rows: size.basis for size in sized.sizes}


@pytest.mark.parametrize("means", [FLAGS, PrecisionMeans(converter="float16")], ids=["flags", "typed"])
def test_each_profile_of_the_plan_is_exact_and_other_sizes_are_estimates(entry, means):
    pretend_built(entry(), means)
    sized = size_model(open_model(entry()), Wanted((8, 64)))
    assert sized.plan == "tensorrt 10.3.0, NVIDIA H200"
    assert [(size.rows, size.own, size.basis) for size in sized.sizes] == [
        (1, False, "built"),
        (8, False, "built"),
        (32, True, "built"),
        (64, False, "estimate"),
    ]
    assert sized.sizes[1].footprint == Footprint(7, 800, 8, 8, 11)
    assert sized.sizes[2].footprint == Footprint(7, 3200, 32, 32, 18)


ASIDE = """precision = "fp16"
[[profile]]
x = { min = [1, 4], opt = [1, 4], max = [1, 4] }
[[profile]]
x = { min = [1, 4], opt = [4, 64], max = [4, 64] }
[[profile]]
x = { min = [1, 4], opt = [32, 8], max = [32, 8] }
"""


@pytest.mark.parametrize("onnx", [True, False], ids=["onnx", "plan"])
def test_a_plan_of_profiles_side_by_side_is_exact_as_a_whole(entry, onnx):
    model = entry(catalogue.affine(), ASIDE)
    path = pretend_built(model)
    if not onnx:
        (model.folder / "model.onnx").unlink()
        (model.folder / "model.plan").write_bytes(path.read_bytes())
        sidecar_path(model.folder / "model.plan").write_text(sidecar_path(path).read_text())
        model = Repository(model.folder.parent).get("m")
    own = size_model(open_model(model), Wanted(())).at(None)
    assert (own.shapes, own.basis) == ({"x": (32, 64)}, "built")
    assert own.footprint == Footprint(7, 3200, 32, 32, 18)


def test_a_plan_of_another_model_or_of_other_settings_does_not_count(entry):
    pretend_built(entry())
    assert bases(entry())[8] == "built"
    other = catalogue.mlp()
    other.producer_name = "other"
    assert set(bases(entry(other)).values()) == {"estimate"}
    assert set(bases(entry(settings=LADDER.replace("fp16", "fp32"))).values()) == {"estimate"}


def test_a_damaged_plan_or_sidecar_does_not_count(entry):
    path = pretend_built(entry())
    path.write_bytes(b"part")
    assert bases(entry())[8] == "estimate"
    path.write_bytes(b"plan")
    sidecar_path(path).write_text("{}")
    assert bases(entry())[8] == "estimate"


def test_a_plan_without_its_onnx_file_has_its_own_sizes_only(entry):
    path = pretend_built(entry())
    folder = entry().folder
    (folder / "model.onnx").unlink()
    (folder / "model.plan").write_bytes(path.read_bytes())
    sidecar_path(folder / "model.plan").write_text(sidecar_path(path).read_text())
    assert bases(Repository(folder.parent).get("m"), (2, 64)) == {1: "built", 8: "built", 32: "built"}


def test_a_plan_that_came_without_a_sidecar_is_refused(entry):
    folder = entry().folder
    (folder / "model.onnx").rename(folder / "model.plan")
    with pytest.raises(ModelLoadFailed, match="has no sidecar"):
        open_model(Repository(folder.parent).get("m"))


def test_a_plan_not_yet_built_has_a_context_for_each_profile_of_the_ladder(entry):
    ladder = size_model(open_model(entry()), Wanted((16,)))
    one = size_model(open_model(entry(settings='precision = "fp16"\n')), Wanted((16,)))
    for many, single in zip(ladder.sizes, one.sizes, strict=True):
        assert many.footprint.context_bytes == 3 * single.footprint.context_bytes > 0
        assert replace(many.footprint, context_bytes=0) == replace(single.footprint, context_bytes=0)


def test_the_size_for_a_number_of_rows_is_the_largest_and_fixed_rows_have_one(entry):
    sized = size_model(open_model(entry()), Wanted((8, 64)))
    assert (sized.at(None).rows, sized.at(64).rows, sized.at(7)) == (32, 64, None)
    fixed = size_model(open_model(entry(catalogue.fixed_batch(), "")), Wanted((8,)))
    assert fixed.at(8) == fixed.at(None) == fixed.sizes[0]


def test_a_model_whose_shapes_no_inference_knows_gets_a_lower_bound(entry):
    model = catalogue.mlp()
    model.graph.node[2].op_type, model.graph.node[2].domain = "Odd", "plugins"
    model.opset_import.add(domain="plugins", version=1)
    assert set(bases(entry(model)).values()) == {"at least"}
