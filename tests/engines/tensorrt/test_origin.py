"""Where plans come from: the model's folder, or tensorq's builder over a fake TensorRT."""

import hashlib
import os

import numpy as np
import pytest

from contract.onnx_subject import AFFINE
from fakes.tensorrt import make_plan
from models import catalogue
from tensorq_engines import BuildFailed, ModelLoadFailed, Profile, Repository, create_engine
from tensorq_engines.tensorrt import builder

PROFILE = Profile.of(x=([1, 8], [4, 16], [8, 32]))
X = np.ones((4, 16), np.float32)


@pytest.fixture
def write(fake, tmp_path):
    """Writes a model's folder anew, and makes its engine."""

    def one(settings="", model=None, plan=None, name="m"):
        folder = tmp_path / name
        folder.mkdir(exist_ok=True)
        (folder / "model.toml").write_text(settings + AFFINE)
        if plan is not None:
            (folder / "model.plan").write_bytes(plan)
        else:
            data = (catalogue.affine() if model is None else model).SerializeToString()
            (folder / "model.onnx").write_bytes(data)
        return create_engine(Repository(tmp_path).get(name))

    return one


class TestOnnx:
    def test_is_described_as_its_plan_will_be_before_it_is_built(self, fake, write, open_lane):
        engine = write()
        guess = engine.footprint
        before = (engine.signature, engine.profiles, engine.ladder)
        assert before[1:] == ((PROFILE,), (1, 4, 8))
        assert fake.builds == 0
        with engine:
            assert (engine.signature, engine.profiles, engine.ladder) == before
            assert (fake.builds, engine.footprint.arena_bytes) == (1, 3 << 20)
            assert engine.footprint != guess
            np.testing.assert_array_equal(open_lane().run(engine, {"x": X})["y"], X * 2 + 1)

    def test_is_built_once_and_described_by_its_sidecar_afterwards(self, fake, write):
        with write() as first:
            footprint = first.footprint
        engine = write()
        assert engine.footprint == footprint
        assert fake.engines == 0
        with engine:
            assert fake.builds == 1

    def test_another_model_or_other_settings_are_another_plan(self, fake, write):
        other = catalogue.affine()
        other.producer_name = "other"
        for settings, model in (("", None), ("precision = 'fp16'\n", None), ("", other)):
            with write(settings, model):
                pass
        assert fake.builds == 3

    def test_a_plan_that_was_damaged_is_built_anew(self, fake, write, tmp_path):
        with write():
            pass
        (plan,) = (tmp_path / "m" / ".tensorq").glob("*.plan")
        plan.write_bytes(plan.read_bytes() + b"more")
        with write():
            assert fake.builds == 2

    def test_a_build_on_a_gpu_that_is_full_meanwhile_is_kept_with_sizes_guessed(self, fake, write, open_lane):
        fake.behaviour.refuse_contexts = 1
        streams = len(fake.cuda.streams)
        with write() as engine:
            assert len(fake.cuda.streams) == streams
            assert fake.builds == 1
            np.testing.assert_array_equal(open_lane().run(engine, {"x": X})["y"], X * 2 + 1)
        with write():
            assert fake.builds == 1

    def test_a_reload_of_an_unchanged_folder_reads_no_onnx_again(self, write, monkeypatch):
        engine = write()
        for _ in range(2):
            with engine:
                pass
        monkeypatch.setattr(builder, "find_or_build", None)
        monkeypatch.setattr(hashlib, "sha256", None)
        with engine:
            assert engine.loaded

    @pytest.mark.parametrize("name", ["model.onnx", "weights/extra.bin", "model.toml"])
    def test_a_reload_of_a_changed_folder_looks_for_its_plan_anew(self, write, monkeypatch, tmp_path, name):
        engine = write()
        with engine:
            pass
        changed = tmp_path / "m" / name
        changed.parent.mkdir(exist_ok=True)
        changed.touch()
        os.utime(changed, (1, 1))
        looked = []
        find = builder.find_or_build
        monkeypatch.setattr(builder, "find_or_build", lambda *args: looked.append(args) or find(*args))
        with engine:
            assert looked

    def test_a_plan_that_is_damaged_between_two_loads_is_built_anew(self, fake, write, tmp_path):
        engine = write()
        with engine:
            pass
        (plan,) = (tmp_path / "m" / ".tensorq").glob("*.plan")
        plan.write_bytes(plan.read_bytes() + b"more")
        with engine:
            assert fake.builds == 2

    def test_a_model_that_tensorrt_refuses_fails_to_load_in_its_words(self, write):
        model = catalogue.affine()
        model.graph.node[0].op_type = "NoSuchOperator"
        engine = write(model=model)
        with pytest.raises(BuildFailed, match=r"model 'm': tensorrt 8\.6\.1 refuses .*\n.*NoSuchOperator"):
            engine.load()
        assert not engine.loaded

    def test_the_precision_and_profile_sharing_reach_the_builder(self, fake, write):
        with write("precision = 'fp16'\n"):
            config = fake.last_config
        assert config.flags == {fake.BuilderFlag.FP16}
        assert config.features == {fake.PreviewFeature.PROFILE_SHARING_0806: True}

    def test_one_profile_for_each_size_has_a_context_each(self, fake, write, open_lane):
        with write("tensorrt.profiles = 'ladder'\n") as engine:
            assert [profile.rows() for profile in engine.profiles] == [(1, 1, 1), (4, 4, 4), (8, 8, 8)]
            lane = open_lane()
            for rows in (1, 4, 8, 4):
                x = np.ones((rows, 16), np.float32)
                np.testing.assert_array_equal(lane.run(engine, {"x": x})["y"], x * 2 + 1)
            assert fake.contexts == 3
            lane.close()
            assert fake.contexts == 0

    def test_a_uint8_wire_is_cast_inside(self, write, open_lane):
        with write("inputs.x = {wire = 'uint8', scale = 0.5, mean = 10}\n") as engine:
            assert engine.signature.inputs[0].dtype == "uint8"
            got = open_lane().run(engine, {"x": np.full((4, 16), 30, np.uint8)})["y"]
            np.testing.assert_array_equal(got, np.full((4, 16), 21, np.float32))

    def test_the_settings_choose_what_is_captured(self, write, open_lane):
        with write("graphs.sizes = 'none'\n") as engine:
            lane = open_lane()
            for _ in range(3):
                lane.run(engine, {"x": X})
            assert engine.graphs.misses == {"off": 3}


class TestPlugins:
    LIBRARY = "tensorrt.plugins = ['p.so']\n"

    @pytest.fixture(params=["onnx", "plan"])
    def engine(self, request, write, tmp_path):
        plan = make_plan(catalogue.affine(), [PROFILE]) if request.param == "plan" else None
        (tmp_path / "m").mkdir()
        (tmp_path / "m" / "p.so").write_bytes(b"a library")
        return write(self.LIBRARY, plan=plan)

    def test_are_known_before_a_plan_is_deserialized(self, monkeypatch, fake, engine, tmp_path):
        known = []
        make = fake.Runtime.deserialize_cuda_engine
        monkeypatch.setattr(
            fake.Runtime,
            "deserialize_cuda_engine",
            lambda self, data: known.append(list(fake.plugins)) or make(self, data),
        )
        with engine:
            assert known[0] == ["own", str(tmp_path / "m" / "p.so")]
        with engine:
            assert len(fake.plugins) == 2, "each once in a process"

    def test_that_are_gone_fail_the_load(self, engine, tmp_path):
        (tmp_path / "m" / "p.so").unlink()
        with pytest.raises(ModelLoadFailed, match=r"tensorrt\.plugins in model\.toml names 'p\.so'"):
            engine.load()


def test_a_plan_of_the_folder_is_used_as_it_is(fake, write, open_lane):
    with write(plan=make_plan(catalogue.affine(), [PROFILE])) as engine:
        assert engine.ladder == (1, 4, 8)
        np.testing.assert_array_equal(open_lane().run(engine, {"x": X})["y"], X * 2 + 1)
    assert fake.builds == 0
