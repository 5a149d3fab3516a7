import onnx
import pytest

from models import catalogue
from tensorq_engines import Profile
from tensorq_engines.onnx_model.tensors import read_shape
from tensorq_engines.tensorrt.builder.rewrite.axes import distinct, tell_apart

TEXT = Profile.of(ids=([1, 8], [4, 64], [8, 512]), mask=([1, 8], [4, 64], [8, 512]))


@pytest.mark.parametrize(
    ("shapes", "profiles", "named"),
    [
        ({"x": ("?", 3, "?", "?")}, [], {"x": ("x.0", 3, "x.2", "x.3")}),
        ({"x": ("n", 3, "s", "s")}, [], {"x": ("n", 3, "s", "x.3")}),
        ({"x": ("n", "n")}, [], {"x": ("n", "x.1")}),
        ({"ids": ("n", "t"), "mask": ("n", "t")}, [TEXT], {"ids": ("n", "t"), "mask": ("n", "t")}),
        (
            {"ids": ("n", "t"), "mask": ("n", "t")},
            [Profile.of(ids=([1, 8], [4, 64], [8, 512]), mask=([1, 8], [4, 64], [8, 99]))],
            {"ids": ("n", "t"), "mask": ("n", "mask.1")},
        ),
        ({"a": (2, 3)}, [], {"a": (2, 3)}),
    ],
)
def test_axes_keep_a_name_only_where_it_stands_for_one_length(shapes, profiles, named):
    assert distinct(shapes, profiles) == named


def test_a_graph_is_renamed_and_one_in_order_is_not():
    model = catalogue.free_axes()
    assert not tell_apart(model, ())
    for axis in (0, 2, 3):
        model.graph.input[0].type.tensor_type.shape.dim[axis].Clear()
    model.graph.output[0].type.tensor_type.shape.dim[0].dim_value = -1
    assert tell_apart(model, ())
    assert read_shape(model.graph.input[0].type.tensor_type.shape) == ("x.0", 3, "x.2", "x.3")
    assert read_shape(model.graph.output[0].type.tensor_type.shape) == ("y.0", 3)
    onnx.checker.check_model(model)
