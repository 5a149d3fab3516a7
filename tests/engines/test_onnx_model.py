import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from models import catalogue
from tensorq_engines import RepositoryError
from tensorq_engines.base.profile import Profile
from tensorq_engines.onnx_model.header import read_header

F32 = TensorProto.FLOAT


@pytest.fixture
def header(tmp_path):
    def read(model, profiles=(), batch_axis=None):
        path = tmp_path / "model.onnx"
        path.write_bytes(model.SerializeToString())
        return read_header(path, profiles, batch_axis, "model.toml")

    return read


def identity(given, gives):
    nodes = [helper.make_node("Identity", ["x"], ["y"])]
    return catalogue.build(nodes, {"x": (F32, given)}, {"y": (F32, gives)})


@pytest.mark.parametrize(
    ("given", "gives", "axis"),
    [
        (["N", 3], ["N", 3], 0),
        (["N", 3], ["M", 3], 0),
        ([None, 3], ["N", 3], 0),
        ([-1, 3], ["N", 3], 0),
        ([4, 3], [4, 3], 0),
        ([4, 3], [1, 3], None),
        (["N", 3], [1, 3], None),
        ([4, 3], ["N", 3], None),
        (["N", 3], [], None),
    ],
)
def test_batch_axis_rule(header, given, gives, axis):
    assert header(identity(given, gives)).signature.batch_axis == axis


def test_fixed_rows_make_the_ladder(header):
    found = header(catalogue.fixed_batch())
    assert (found.signature.fixed_rows, found.ladder) == (4, (4,))


def test_free_axes_keep_their_symbol_or_get_a_question_mark(header):
    found = header(identity(["N", None, 3, -1], ["N", None, 3, "W"])).signature
    assert found.inputs[0].shape == ("N", "?", 3, "?")
    assert found.outputs[0].shape == ("N", "?", 3, "W")


def test_weights_that_are_listed_as_inputs_are_no_inputs(header):
    model = catalogue.mlp()
    model.graph.input.append(helper.make_tensor_value_info("w1", F32, [128, 32]))
    assert [spec.name for spec in header(model).signature.inputs] == ["x"]


def test_an_output_without_shape_is_inferred(header):
    model = catalogue.affine()
    model.graph.output[0].type.tensor_type.ClearField("shape")
    found = header(model).signature
    assert (found.outputs[0].shape, found.batch_axis) == (("N", "W"), 0)


def test_an_output_that_nothing_tells_of_means_no_batch_axis_unless_the_settings_say_so(header):
    model = catalogue.affine()
    model.graph.output[0].type.tensor_type.ClearField("shape")
    model.graph.node[1].domain = "unknown"
    model.opset_import.append(helper.make_opsetid("unknown", 1))
    assert header(model).signature.batch_axis is None
    assert header(model, batch_axis=0).signature.batch_axis == 0


def test_the_override_wins(header):
    assert header(catalogue.affine(), batch_axis="none").signature.batch_axis is None
    assert header(catalogue.affine(), batch_axis="none").ladder == (1,)


@pytest.mark.parametrize(
    ("given", "gives", "words"),
    [(["N", 3], [1, 3], "free"), (["N", 3], [], "scalar"), ([4, 3], [2, 6], "fixed")],
)
def test_an_override_that_cannot_be_is_a_problem(header, given, gives, words):
    with pytest.raises(RepositoryError, match=words) as caught:
        header(identity(given, gives), batch_axis=0)
    assert [(problem.file, problem.key) for problem in caught.value.problems] == [
        ("model.toml", "batch_axis")
    ]


def test_a_scalar_input_is_a_problem(header):
    with pytest.raises(RepositoryError, match=r"x: input x: float32.* is a scalar"):
        header(identity([], []))


def test_a_model_without_inputs_is_a_problem(header):
    model = catalogue.affine()
    model.graph.initializer.append(numpy_helper.from_array(np.zeros((1, 1), np.float32), "x"))
    with pytest.raises(RepositoryError, match="no inputs"):
        header(model)


def test_an_input_without_shape_is_a_problem(header):
    model = catalogue.affine()
    model.graph.input[0].type.tensor_type.ClearField("shape")
    with pytest.raises(RepositoryError, match="declares no shape"):
        header(model)


@pytest.mark.parametrize(
    ("elem_type", "name"),
    [
        (TensorProto.BFLOAT16, "bfloat16"),
        (TensorProto.STRING, "string"),
        (TensorProto.FLOAT8E5M2, "float8e5m2"),
    ],
)
def test_dtypes_that_numpy_lacks_are_a_problem_each(header, elem_type, name):
    with pytest.raises(RepositoryError) as caught:
        header(catalogue._identity(elem_type))
    assert [(problem.key, name in problem.message) for problem in caught.value.problems] == [
        ("x", True),
        ("y", True),
    ]


def test_dtypes_of_a_newer_onnx_are_told_where_jobs_carry_them(header):
    model = catalogue.affine()
    model.graph.input[0].type.tensor_type.elem_type = 99
    with pytest.raises(RepositoryError, match="x: its dtype has the number 99"):
        header(model)
    model = catalogue.affine()
    model.graph.initializer[0].data_type = 99
    assert header(model).footprint.weights_bytes == 4


def test_a_sequence_input_is_a_problem(header):
    model = catalogue.affine()
    model.graph.input.append(helper.make_tensor_sequence_value_info("many", F32, None))
    with pytest.raises(RepositoryError, match="many: it is a sequence"):
        header(model)


def test_footprint_of_the_mlp_is_what_one_counts_by_hand(header):
    found = header(catalogue.mlp()).footprint
    assert found.weights_bytes == 4 * (128 * 32 + 32 + 32 * 16 + 16)
    assert found.io_bytes == 4 * 32 * (128 + 16)
    assert found.arena_bytes == 4 * 32 * (32 + 32)
    assert found.pinned_bytes == 0


def test_footprint_counts_constants_as_weights_wherever_they_stand(header):
    model = catalogue.mlp()
    stored = header(model).footprint
    for weight in list(model.graph.initializer):
        model.graph.node.insert(0, helper.make_node("Constant", [], [weight.name], value=weight))
    del model.graph.initializer[:]
    assert header(model).footprint == stored


def test_footprint_counts_the_largest_tile_of_the_profiles(header):
    profile = Profile.of(x=([1, 3, 8, 8], [2, 3, 8, 8], [5, 3, 16, 20]))
    found = header(catalogue.free_axes(), [profile]).footprint
    assert found.io_bytes == 4 * 5 * 3 * (16 * 20 + 1)


def test_footprint_follows_lengths_through_outputs_that_declare_only_symbols(header):
    profile = Profile.of(x=([1, 2], [1, 2], [4, 6]))
    assert header(catalogue.affine(), [profile]).footprint.io_bytes == 2 * 4 * 4 * 6


def test_footprint_counts_weights_in_external_files_without_reading_them(header, tmp_path):
    model = catalogue.mlp()
    weight = model.graph.initializer[0]
    weight.ClearField("raw_data")
    weight.data_location = TensorProto.EXTERNAL
    weight.external_data.add(key="location", value="weights.bin")
    (tmp_path / "weights.bin").write_bytes(b"")
    assert header(model).footprint.weights_bytes == 4 * (128 * 32 + 32 + 32 * 16 + 16)


def test_footprint_follows_a_reshape_to_a_computed_shape(header):
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Gather", ["shape", "zero"], ["rows"]),
        helper.make_node("Concat", ["rows", "rest"], ["flat"], axis=0),
        helper.make_node("Reshape", ["x", "flat"], ["y"]),
    ]
    weights = {"zero": np.array([0]), "rest": np.array([12])}
    model = catalogue.build(nodes, {"x": (F32, ["N", 3, 4])}, {"y": (F32, ["N", None])}, weights)
    assert header(model).footprint.io_bytes == 2 * 4 * 32 * 12
