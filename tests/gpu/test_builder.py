"""Plans that tensorq's builder builds here, run here. Needs the builder's parts: see README.md."""

import json
import os
import time
from contextlib import ExitStack

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from contract.onnx_subject import AFFINE, wide_profile
from gpu.build_models import prepare
from gpu.parity import Reference, as_facts, compare
from models import catalogue, networks
from tensorq_engines import BuildFailed, Repository, TileFailed, create_engine
from tensorq_engines.tensorrt import flavour as flavours
from tensorq_engines.tensorrt.builder import find, find_or_build
from tensorq_engines.tensorrt.builder.calibration.calibrate import calibrate
from tensorq_engines.tensorrt.cuda.device import Device
from tensorq_engines.tensorrt.native import deserialize

ROWS = "[[profile]]\nx = { min = [1, 4], opt = [8, 4], max = [32, 4] }\n"
SPREADS = ("one", "ladder")
LIMITS = {"fp32": (1e-3, 0.99999), "fp16": (2e-2, 0.999)}


def build(entry, fact):
    """Finds or builds a plan, and keeps how long that took."""
    began = time.perf_counter()
    plan = find_or_build(entry, flavours.find(), Device.probe())
    fact(build_s=round(time.perf_counter() - began, 1), plan_bytes=plan.path.stat().st_size)
    return plan


class TestNetworks:
    @pytest.mark.parametrize("precision", LIMITS)
    @pytest.mark.parametrize("name", networks.ALL)
    def test_agree_with_onnxruntime(self, build_folder, lane, name, precision, fact):
        folder = prepare(build_folder, name, precision, "one")
        settings = folder / "model.toml"
        if precision == "fp32" and "tf32" not in settings.read_text():
            settings.write_text(f"tensorrt.tf32 = false\n{settings.read_text()}")
        entry = Repository(build_folder).get(folder.name)
        build(entry, fact)
        reference = Reference(entry.source)
        error, cosine = LIMITS[precision]
        with create_engine(entry) as engine:
            assert engine.ladder == (1, 8, 32)
            for rows in (1, 8):
                rng = np.random.default_rng(rows)
                inputs = {"input": rng.uniform(-1, 1, (rows, 3, 224, 224)).astype(np.float32)}
                found = compare(lane.run(engine, inputs), reference.run(inputs))
                fact(**{f"rows_{rows}": as_facts(found)})
                assert all(one.error <= error and one.cosine >= cosine for one in found.values())
            assert not engine.graphs.failures

    def test_a_second_build_is_found_in_the_cache(self, build_folder, fact):
        entry = Repository(build_folder).get(prepare(build_folder, "tiny", "fp16", "one").name)
        first = build(entry, fact)
        began = time.perf_counter()
        assert find_or_build(entry, flavours.find(), Device.probe()) == first
        found_s = time.perf_counter() - began
        fact(found_s=round(found_s, 3), sidecar=json.loads(first.sidecar.to_json()))
        assert find(entry, flavours.find(), Device.probe()) == first
        assert found_s < 2
        assert first.sidecar.device_name == Device.require().name
        assert first.sidecar.activation_bytes[0] > 0


class TestTensors:
    def test_int64_is_int32_inside_and_what_does_not_fit_is_refused(self, open_built, lane):
        engine = open_built(catalogue.identity_int64(), ROWS)
        assert engine.signature.inputs[0].dtype == "int64"
        for value in (-5, 2**31 - 1):
            got = lane.run(engine, {"x": np.full((8, 4), value)})["y"]
            assert (got.dtype.name, got.min(), got.max()) == ("int64", value, value)
        if engine.model.native.inputs[0].dtype == "int32":
            with pytest.raises(TileFailed, match="int32"):
                lane.run(engine, {"x": np.full((8, 4), 2**40)})

    def test_an_int64_index(self, open_built, lane):
        profile = "[[profile]]\nindex = { min = [1], opt = [8], max = [32] }\n"
        engine = open_built(catalogue.gather(), profile)
        got = lane.run(engine, {"index": np.array([4, 0, 2])})["y"]
        assert got.tolist() == [[16, 17, 18, 19], [0, 1, 2, 3], [8, 9, 10, 11]]

    def test_bool(self, open_built, lane):
        engine = open_built(catalogue.identity_bool(), ROWS)
        x = np.random.default_rng(0).integers(0, 2, (8, 4)).astype(bool)
        for _ in range(3):
            np.testing.assert_array_equal(lane.run(engine, {"x": x})["y"], x)

    def test_float16(self, open_built, lane):
        engine = open_built(catalogue.identity_float16(), f"precision = 'fp16'\n{ROWS}")
        x = np.random.default_rng(0).standard_normal((8, 4)).astype(np.float16)
        got = lane.run(engine, {"x": x})["y"]
        assert got.dtype == np.float16
        np.testing.assert_array_equal(got, x)

    def test_uint8_on_the_wire(self, open_built, lane):
        wire = "inputs.x = { wire = 'uint8', scale = 0.5, mean = 10 }\n"
        engine = open_built(catalogue.affine(), wire + AFFINE)
        x = np.arange(4 * 16, dtype=np.uint8).reshape(4, 16)
        for _ in range(3):
            got = lane.run(engine, {"x": x})["y"]
            np.testing.assert_array_equal(got, (x.astype(np.float32) - 10) + 1)

    def test_uint8_that_is_no_input_alone_is_built_or_refused_in_words(self, open_built, lane, fact):
        try:
            engine = open_built(catalogue.identity_uint8(), ROWS)
        except BuildFailed as exc:
            fact(refusal=str(exc))
            return
        x = np.arange(32, dtype=np.uint8).reshape(8, 4)
        np.testing.assert_array_equal(lane.run(engine, {"x": x})["y"], x)

    def test_several_inputs_and_outputs(self, open_built, lane):
        model = catalogue.two_in_two_out()
        engine = open_built(model, wide_profile(model))
        for rows in (1, 3, 8, 8, 32):
            tile = {"a": np.full((rows, 4), 5.5, np.float32), "b": np.full((rows, 4), rows)}
            got = lane.run(engine, tile)
            np.testing.assert_array_equal(got["sum"], np.full((rows, 4), 5.5 + rows, np.float32))
            np.testing.assert_array_equal(got["diff"], np.full((rows, 4), 5 - rows))

    def test_a_scalar(self, open_built, lane):
        engine = open_built(catalogue.no_batch())
        for value in (1, 2, 3):
            got = lane.run(engine, {"x": np.full((3, 3), value, np.float32)})["y"]
            assert (got.shape, float(got)) == ((), 9.0 * value)

    def test_an_output_whose_shape_the_data_decide(self, open_built, lane, fact):
        f32, i64 = TensorProto.FLOAT, TensorProto.INT64
        nodes = [helper.make_node("Add", ["x", "x"], ["y"]), helper.make_node("NonZero", ["x"], ["where"])]
        outputs = {"y": (f32, ["N", 4]), "where": (i64, [2, "K"])}
        model = catalogue.build(nodes, {"x": (f32, ["N", 4])}, outputs)
        engine = open_built(model, f"batch_axis = 'none'\n{ROWS}")
        for seed in range(6):
            rng = np.random.default_rng(seed)
            x = rng.integers(0, 2 + seed % 2, (1 + 5 * seed, 4)).astype(np.float32)
            got = lane.run(engine, {"x": x})
            np.testing.assert_array_equal(got["where"], np.nonzero(x))
            np.testing.assert_array_equal(got["y"], 2 * x)
        assert lane.run(engine, {"x": np.zeros((3, 4), np.float32)})["where"].shape == (2, 0)
        fact(graphs=str(engine.graphs), footprint=str(engine.footprint))
        assert engine.graphs.captures == 0


class TestPrecision:
    def test_int8_has_int8_layers_and_computes_nearly_the_same(self, write_model, tmp_path, lane, fact):
        settings = "precision = 'int8'\ntensorrt.detailed_layers = true\n"
        entry = write_model(networks.convolutions(), settings)
        images = np.random.default_rng(2).integers(0, 256, (40, 3, 16, 16)).astype(np.float32)
        np.savez(tmp_path / "data.npz", x=images)
        calibrate(entry, [tmp_path / "data.npz"])
        plan = build(entry, fact)
        layers = inspect(plan, fact)
        fact(int8_layers=layers)
        assert layers
        with create_engine(entry) as engine:
            tile = {"x": images[:32]}
            found = compare(lane.run(engine, tile), Reference(entry.source).run(tile))
            fact(parity=as_facts(found))
            assert found["y"].error < 0.05

    def test_bf16_is_refused_before_tensorrt_10(self, write_model):
        flavour = flavours.find()
        if "BF16" in flavour.module.BuilderFlag.__members__:
            pytest.skip(f"{flavour.name} {flavour.version_text} has bf16")
        with pytest.raises(BuildFailed, match=r"has none before 10; write 'fp16' or 'fp32'"):
            find_or_build(write_model(catalogue.mlp(), "precision = 'bf16'\n"), flavour, Device.probe())


class TestProfiles:
    def test_several_of_one_plan_have_contexts_on_several_lanes_at_once(self, open_built, open_lane):
        engine = open_built(catalogue.mlp(), "tensorrt.profiles = 'ladder'\n")
        assert len(engine.profiles) == 3
        lanes = [open_lane(graph_trials=0), open_lane(graph_trials=0)]
        x = np.random.default_rng(1).standard_normal((32, 128)).astype(np.float32)
        for _ in range(3):
            for rows in engine.ladder:
                one, two = (each.run(engine, {"x": x[:rows]})["y"] for each in lanes)
                np.testing.assert_array_equal(one, two)
        assert engine.graphs.hits == 2 * 2 * 3

    def test_an_operator_that_tensorrt_lacks_is_told_with_its_node(self, write_model, fact):
        model = catalogue.compress()
        model.graph.node[1].name = "odd one"
        entry = write_model(model, "[[profile]]\nkeep = { min = [1], opt = [2], max = [8] }\n")
        with pytest.raises(BuildFailed, match="Compress") as caught:
            find_or_build(entry, flavours.find(), Device.probe())
        fact(words=str(caught.value))


def inspect(plan, fact):
    """Names of the layers that compute in int8, by the kernels that TensorRT's inspector names.

    Formats of tensors would tell more, but 8.6 shows none for an engine of dynamic shapes.
    """
    native = deserialize(flavours.find(plan.sidecar.flavour), plan.read(), "inspected")
    try:
        inspector = native.handle.create_engine_inspector()
        kind = native.flavour.module.LayerInformationFormat.JSON
        layers = json.loads(inspector.get_engine_information(kind))["Layers"]
        del inspector
    finally:
        native.close()
    kernels = {layer["Name"]: layer.get("TacticName", "") for layer in layers}
    fact(kernels=kernels)
    return [name for name, kernel in kernels.items() if "i8" in kernel]


def test_the_onnx_of_the_networks_is_the_same_everywhere():
    """A plan is found again only if its model is made alike each time."""
    for make in networks.ALL.values():
        assert onnx.ModelProto.SerializeToString(make()) == onnx.ModelProto.SerializeToString(make())


@pytest.mark.parametrize("name", ["resnet18", "rec"])
def test_one_profile_and_one_for_each_size(request, build_folder, lane, name, fact):
    """Which of the two is the better default is read from these times. The last, for it takes minutes."""
    files, row = None, (3, 224, 224)
    if name == "rec":
        if "TENSORQ_SLOW" not in os.environ:
            pytest.skip("takes many minutes: set TENSORQ_SLOW")
        files, row = request.getfixturevalue("onnx_files"), (3, 48, 320)
    folders = {profiles: prepare(build_folder, name, "fp16", profiles, files=files) for profiles in SPREADS}
    with ExitStack() as stack:
        engines = {}
        for profiles, folder in folders.items():
            began = time.perf_counter()
            engines[profiles] = stack.enter_context(create_engine(Repository(build_folder).get(folder.name)))
            fact(**{f"{profiles}_load_s": round(time.perf_counter() - began, 1)})
            fact(**{f"{profiles}_footprint": str(engines[profiles].footprint)})
        fact(us={rows: race(lane, engines, (rows, *row)) for rows in (1, 8, 32)})


def race(lane, engines, shape):
    """Median microseconds of a tile by engine, taken in turns, on slots already filled."""
    samples = {name: [] for name in engines}
    for _ in range(60):
        for name, engine in engines.items():
            slot = lane.acquire(engine, {engine.signature.inputs[0].name: shape})
            began = time.perf_counter()
            lane.submit(slot)
            slot.wait()
            samples[name].append(time.perf_counter() - began)
            slot.release()
    return {name: round(float(np.median(taken[10:])) * 1e6, 1) for name, taken in samples.items()}
