"""Plans and their sidecars, and what is said of those that cannot be used."""

import hashlib
import json
import math
from dataclasses import replace

import pytest
from onnx import helper

from fakes.tensorrt import make_plan
from models import catalogue
from tensorq import Signature
from tensorq.signature import TensorSpec
from tensorq_engines import ModelLoadFailed, Profile
from tensorq_engines.tensorrt.engine import TensorRtEngine
from tensorq_engines.tensorrt.plan import PlanFile
from tensorq_engines.tensorrt.sidecar import Sidecar, sidecar_path

PROFILE = Profile.of(x=([1, 4], [8, 16], [32, 64]))
SPEC = ("float32", ("N", "W"))


def plan(**settings):
    return make_plan(catalogue.affine(), [PROFILE], **settings)


def describe(data, **changes):
    signature = Signature((TensorSpec("x", *SPEC),), (TensorSpec("y", *SPEC),), 0)
    sidecar = Sidecar(
        name="m",
        signature=signature,
        profiles=(PROFILE,),
        activation_bytes=(100,),
        weights_bytes=10,
        io_bytes=(20,),
        context_bytes=(5,),
        flavour="tensorrt",
        version_text="8.6.1",
        compute_capability="9.0",
        device_name="Fake GPU",
        precision="fp32",
        recipe="abc",
        sha256=hashlib.sha256(data).hexdigest(),
    )
    return replace(sidecar, **changes)


@pytest.fixture
def write(fake, tmp_path):
    def one(data, sidecar=None, **settings):
        path = tmp_path / "m.plan"
        path.write_bytes(data)
        if sidecar is not None:
            sidecar.write(sidecar_path(path))
        return TensorRtEngine("m", path, **settings)

    return one


class TestSidecar:
    def test_describes_the_plan_without_deserializing_it(self, fake, write):
        engine = write(plan(), describe(plan()))
        footprint = engine.footprint
        assert (footprint.weights_bytes, footprint.arena_bytes, footprint.io_bytes) == (10, 100, 20)
        assert (footprint.pinned_bytes, footprint.context_bytes) == (20, 5)
        assert engine.ladder == (1, 8, 32)
        assert fake.engines == 0
        with engine:
            assert engine.footprint == footprint

    def test_comes_back_as_it_was_written(self, tmp_path):
        sidecar = describe(plan())
        sidecar.write(tmp_path / "s.json")
        assert Sidecar.read(tmp_path / "s.json") == sidecar
        assert [path.name for path in tmp_path.iterdir()] == ["s.json"]

    @pytest.mark.parametrize(
        ("damage", "words"),
        [
            (lambda data: {**data, "version": 99}, "got version 99, expected 1"),
            (lambda data: {key: data[key] for key in data if key != "recipe"}, r"without \['recipe'\]"),
            (lambda data: {**data, "more": 1}, r"with \['more'\] besides"),
            (lambda data: {**data, "io_bytes": []}, "0 io_bytes, 1 context_bytes, expected the same number"),
            (lambda data: {**data, "profiles": [[{}]]}, "is not a plan's sidecar"),
            (lambda data: [1], "got a list, expected an object"),
            (lambda data: {**data, "weights_bytes": math.inf}, "cannot convert float infinity"),
        ],
    )
    def test_that_cannot_be_used_fails_with_its_file_and_fault(self, write, tmp_path, damage, words):
        engine = write(plan(), describe(plan()))
        path = tmp_path / "m.plan.json"
        path.write_text(json.dumps(damage(json.loads(path.read_text()))))
        with pytest.raises(ModelLoadFailed, match=rf"'m'.*m\.plan\.json.*{words}"):
            engine.load()

    def test_of_another_plan_is_refused(self, write):
        engine = write(plan(), describe(b"another"))
        with pytest.raises(ModelLoadFailed, match=r"has sha256 .*, expected .* it is damaged"):
            engine.load()

    def test_whose_tensors_are_not_the_plans_is_refused(self, fake, write):
        other = Signature((TensorSpec("z", *SPEC),), (TensorSpec("y", *SPEC),), 0)
        with pytest.raises(ModelLoadFailed, match=r"the plan has inputs \['x'\], expected \['z'\]"):
            write(plan(), describe(plan(), signature=other)).load()
        other = Signature((TensorSpec("x", "int64", ("N", "W")),), (TensorSpec("y", *SPEC),), 0)
        with pytest.raises(ModelLoadFailed, match=r"'x' in float32, expected int64 .* not cast"):
            write(plan(), describe(plan(), signature=other)).load()
        assert fake.engines == 0


class TestPlan:
    @pytest.mark.parametrize(
        ("data", "words"),
        [
            (b"", "is empty"),
            (b"not a plan at all", "Magic tag .* it is not a plan of this TensorRT"),
            (plan()[:200], "cut short.*build it anew"),
            (plan(version="10.0.1"), "Version tag .* built by another version"),
            (plan(device="8.0"), "incompatible device.* built for another GPU"),
        ],
    )
    def test_that_cannot_be_loaded_fails_in_tensorrts_words_with_what_to_do(self, fake, write, data, words):
        engine = write(data)
        with pytest.raises(ModelLoadFailed, match=rf"model 'm'.*m\.plan.*{words}"):
            engine.load()
        assert not engine.loaded
        assert fake.engines == 0

    @pytest.mark.parametrize("described", [True, False])
    def test_without_the_batch_axis_that_the_settings_name_is_refused(self, write, described):
        nodes = [helper.make_node("ReduceSum", ["x"], ["y"], keepdims=0)]
        model = catalogue.build(nodes, {"x": (1, ["N", "W"])}, {"y": (1, [])})
        data = make_plan(model, [PROFILE])
        scalar = Signature((TensorSpec("x", *SPEC),), (TensorSpec("y", "float32", ()),), None)
        engine = write(data, describe(data, signature=scalar) if described else None, batch_axis=0)
        with pytest.raises(ModelLoadFailed, match=r"m\.plan: got batch_axis 0 .* y: float32\[\] is a scalar"):
            engine.load()
        with pytest.raises(ModelLoadFailed, match="got batch_axis 0"):
            _ = engine.signature

    def test_that_is_gone_fails_with_its_path(self, fake, tmp_path):
        with pytest.raises(ModelLoadFailed, match=r"gone\.plan cannot be read: No such file"):
            TensorRtEngine("m", tmp_path / "gone.plan").load()

    def test_is_found_with_or_without_a_sidecar(self, write, tmp_path):
        write(plan())
        assert PlanFile.find(tmp_path / "m.plan").sidecar is None
        write(plan(), describe(plan()))
        assert PlanFile.find(tmp_path / "m.plan").sidecar == describe(plan())
