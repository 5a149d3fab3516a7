"""Inputs that travel as uint8: both host engines compute what numpy would have been sent as float32."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from models import catalogue
from tensorq_engines import Repository, create_engine, create_lane
from tensorq_engines.base.wire import Wire
from tensorq_engines.onnx_model.wire import add_wires

from .conftest import engine_of

CHANNELS = "[inputs.x]\nwire = 'uint8'\nscale = [0.0171, 0.0175, 0.0174]\nmean = [123.675, 116.28, 103.53]\n"
CASES = {
    "plain": ("[inputs.x]\nwire = 'uint8'\n", Wire("x")),
    "one": (
        "[inputs.x]\nwire = 'uint8'\nscale = 0.00784\nmean = 127.5\n",
        Wire("x", scale=(0.00784,), mean=(127.5,)),
    ),
    "channels": (
        CHANNELS,
        Wire("x", scale=(0.0171, 0.0175, 0.0174), mean=(123.675, 116.28, 103.53)),
    ),
    "last": (
        "[inputs.x]\nwire = 'uint8'\nmean = [1, 2, 3, 4]\naxis = 3\n",
        Wire("x", mean=(1.0, 2.0, 3.0, 4.0), axis=3),
    ),
}


def images(elem_type=TensorProto.FLOAT):
    """x [N, 3, 5, 4] -> y = relu(x) + x."""
    nodes = [helper.make_node("Relu", ["x"], ["r"]), helper.make_node("Add", ["r", "x"], ["y"])]
    shape = ["N", 3, 5, 4]
    return catalogue.build(nodes, {"x": (elem_type, shape)}, {"y": (elem_type, shape)})


def run(engine, tile):
    with engine, create_lane(engine.kind) as lane:
        return lane.run(engine, tile)


@pytest.mark.parametrize("case", CASES)
def test_a_tile_of_bytes_gives_what_the_normalised_floats_give(tmp_path, kind, case):
    settings, wire = CASES[case]
    sent = np.random.default_rng(1).integers(0, 256, (8, 3, 5, 4)).astype(np.uint8)
    engine = engine_of(kind, tmp_path, images(), settings)
    assert (engine.signature.inputs[0].dtype, engine.signature.outputs[0].dtype) == ("uint8", "float32")
    expected = run(engine_of(kind, tmp_path, images()), {"x": wire.normalise(sent)})
    got = run(engine, {"x": sent})
    np.testing.assert_array_equal(got["y"], expected["y"])


def test_numpy_normalises_as_documented():
    sent = np.full((1, 2, 1), 10, np.uint8)
    np.testing.assert_array_equal(Wire("x", scale=(2, 3), mean=(1, 4)).normalise(sent), [[[18], [18]]])


def test_a_float16_model_is_normalised_in_float32(tmp_path, kind):
    sent = np.random.default_rng(1).integers(0, 256, (2, 3, 5, 4)).astype(np.uint8)
    got = run(engine_of(kind, tmp_path, images(TensorProto.FLOAT16), CHANNELS), {"x": sent})["y"]
    values = CASES["channels"][1].normalise(sent).astype(np.float16)
    np.testing.assert_array_equal(got, np.maximum(values, 0) + values)


def test_reads_inside_branches_are_renamed_too():
    def branch(name, kind):
        out = helper.make_tensor_value_info(name, TensorProto.FLOAT, None)
        return helper.make_graph([helper.make_node(kind, ["x"], [name])], name, [], [out])

    node = helper.make_node(
        "If", ["c"], ["y"], then_branch=branch("a", "Relu"), else_branch=branch("b", "Neg")
    )
    model = catalogue.build([node], {"x": (1, ["N", 2]), "c": (9, [])}, {"y": (1, ["N", 2])})
    add_wires(model, [Wire("x")])
    onnx.checker.check_model(model, full_check=True)
    assert [item.g.node[0].input[0] for item in model.graph.node[-1].attribute] == ["x/wire/out"] * 2


def test_external_weights_come_with_the_model(tmp_path):
    path = catalogue.write_repository(tmp_path, {"m": (catalogue.mlp(), "inputs.x.wire = 'uint8'")})
    source = path / "m" / "model.onnx"
    onnx.save(catalogue.mlp(), str(source), save_as_external_data=True, location="w", size_threshold=0)
    tile = {"x": np.ones((1, 128), np.uint8)}
    got = run(create_engine(Repository(path).get("m")), tile)
    expected = run(engine_of("onnxruntime", tmp_path, catalogue.mlp()), {"x": tile["x"].astype(np.float32)})
    np.testing.assert_allclose(got["y"], expected["y"], rtol=1e-6)


@pytest.mark.parametrize(
    ("settings", "key", "message", "remedy"),
    [
        ("[inputs.X]\nwire = 'uint8'", "inputs.X", "no such input", "use one of: x"),
        ("[inputs.x]\nwire = 'int4'", "inputs.x.wire", "got 'int4', expected 'uint8'", "correct"),
        ("[inputs.x]\nmean = 3", "inputs.x.wire", "is missing", "give 'uint8'"),
        ("[inputs.x]\nwire = 'uint8'\nmena = 3", "inputs.x.mena", "unknown key", "did you mean 'mean'?"),
        (
            "[inputs.x]\nwire = 'uint8'\nscale = 'a'",
            "inputs.x.scale",
            "got 'a', expected a number",
            "correct",
        ),
        ("[inputs.x]\nwire = 'uint8'\nscale = []", "inputs.x.scale", "got [], expected a number", "correct"),
        ("[inputs.x]\nwire = 'uint8'\nscale = [1, true]", "inputs.x.scale", "got [1, True]", "correct"),
        ("[inputs.x]\nwire = 'uint8'\nscale = inf", "inputs.x.scale", "got inf", "correct"),
        (
            "[inputs.x]\nwire = 'uint8'\nscale = [1, 2]",
            "inputs.x.scale",
            "got 2 values for axis 1, which is 3 long",
            "one a channel",
        ),
        (
            "[inputs.x]\nwire = 'uint8'\nmean = [1, 2]\naxis = 0",
            "inputs.x.mean",
            "got 2 values for axis 0, which is free",
            "one value",
        ),
        (
            "[inputs.x]\nwire = 'uint8'\nmean = [1, 2]\naxis = 9",
            "inputs.x.mean",
            "axis 9, which is not there",
            "one value",
        ),
        ("inputs = 3", "inputs", "got 3, expected tables [inputs.INPUT]", "correct"),
        ("inputs.x = 3", "inputs.x", "got 3, expected tables [inputs.INPUT]", "correct"),
        ("[tensorrt]\nprofiles = 'many'", "tensorrt.profiles", "got 'many', expected 'one'", "correct"),
        (
            "[tensorrt]\noptimization_level = 6",
            "tensorrt.optimization_level",
            "got 6, expected a whole number, 0 to 5",
            "correct",
        ),
        ("[tensorrt]\nplugins = [1]", "tensorrt.plugins[0]", "got 1, expected a list of names", "correct"),
    ],
)
def test_each_mistake_is_told_with_key_and_remedy(tmp_path, settings, key, message, remedy):
    problems = Repository(catalogue.write_repository(tmp_path, {"m": (images(), settings)})).check()
    found = [problem for problem in problems if problem.key == key]
    assert found, [str(problem) for problem in problems]
    assert message in found[0].message
    assert remedy in found[0].remedy


def test_an_input_that_is_not_float_is_refused(tmp_path):
    models = {"m": (catalogue.gather(), "inputs.index.wire = 'uint8'")}
    (problem,) = Repository(catalogue.write_repository(tmp_path, models)).check()
    assert "takes int64 there, expected float" in problem.message


def test_a_plan_with_wire_inputs_is_told(tmp_path):
    path = catalogue.write_repository(
        tmp_path, {"m": (images(), "source = 'model.plan'\ninputs.x.wire = 'uint8'")}
    )
    (path / "m" / "model.plan").write_bytes(b"plan")
    (problem,) = Repository(path).check()
    assert problem.key == "inputs"
