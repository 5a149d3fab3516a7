"""Shapes that a graph computes with are known once its inputs' shapes are."""

import tracemalloc

import numpy as np
import pytest
from onnx import TensorProto, helper

from models import catalogue
from tensorq_engines.onnx_model.fold import infer_fixed
from tensorq_engines.onnx_model.inference import in_order

F32, I32, I64 = TensorProto.FLOAT, TensorProto.INT32, TensorProto.INT64


def shape_of(graph, name):
    (info,) = [info for info in (*graph.output, *graph.value_info) if info.name == name]
    return [dim.dim_value for dim in info.type.tensor_type.shape.dim]


def reshaping():
    """x f32[N, 3, W] -> y f32[N, 3 W], by numbers that go through casts, as PaddlePaddle writes them."""
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Cast", ["s"], ["s32"], to=I32),
        helper.make_node("Slice", ["s32", "zero", "one"], ["rows32"]),
        helper.make_node("Cast", ["rows32"], ["rows"], to=I64),
        helper.make_node("Concat", ["rows", "rest"], ["to"], axis=0),
        helper.make_node("Reshape", ["x", "to"], ["flat"]),
        helper.make_node("Relu", ["flat"], ["y"]),
    ]
    values = {"zero": np.int64([0]), "one": np.int64([1]), "rest": np.int64([-1])}
    return catalogue.build(nodes, {"x": (F32, ["N", 3, "W"])}, {"y": (F32, ["N", "M"])}, values)


def test_shapes_follow_through_casts_and_slices():
    graph = infer_fixed(reshaping(), {"x": (4, 3, 10)}).graph
    assert shape_of(graph, "flat") == shape_of(graph, "y") == [4, 30]
    assert [node.op_type for node in graph.node] == ["Reshape", "Relu"]


def test_the_model_stays_as_it_was():
    model = reshaping()
    before = model.SerializeToString()
    infer_fixed(model, {"x": (4, 3, 10)})
    assert model.SerializeToString() == before


def test_an_output_that_declares_its_rows_as_minus_one_has_those_of_the_tile():
    model = catalogue.affine()
    model.graph.output[0].type.tensor_type.shape.dim[0].dim_value = -1
    assert shape_of(infer_fixed(model, {"x": (5, 7)}).graph, "y") == [5, 7]


def test_what_cannot_be_computed_stays_unknown():
    nodes = [
        helper.make_node("NonZero", ["x"], ["where"]),
        helper.make_node("Shape", ["where"], ["s"]),
        helper.make_node("Reshape", ["where", "s"], ["y"]),
    ]
    model = catalogue.build(nodes, {"x": (F32, ["N", 4])}, {"y": (I64, [2, "K"])})
    assert len(infer_fixed(model, {"x": (2, 4)}).graph.node) == 3


def test_a_constant_whose_value_lies_in_a_file_stays_unread():
    value = TensorProto(name="k", data_type=F32, dims=[4], data_location=TensorProto.EXTERNAL)
    value.external_data.add(key="location", value="k")
    nodes = [helper.make_node("Constant", [], ["k"], value=value), helper.make_node("Add", ["x", "k"], ["y"])]
    model = catalogue.build(nodes, {"x": (F32, ["N", 4])}, {"y": (F32, ["N", 4])})
    assert shape_of(infer_fixed(model, {"x": (2, 4)}).graph, "y") == [2, 4]


@pytest.mark.parametrize(
    "mask",
    [
        [helper.make_node("ConstantOfShape", ["length"], ["mask"])],
        [helper.make_node("Expand", ["one", "length"], ["mask"])],
        [helper.make_node("Range", ["zero", "many", "step"], ["mask"])],
    ],
    ids=lambda nodes: nodes[0].op_type,
)
def test_what_is_large_is_not_computed(mask):
    nodes = [
        *mask,
        helper.make_node("ReduceSum", ["mask"], ["sum"], keepdims=0),
        helper.make_node("Add", ["x", "sum"], ["y"]),
    ]
    values = {
        "length": np.int64([2048, 4096]),
        "one": np.float32([1]),
        "zero": np.float32(0),
        "many": np.float32(1 << 23),
        "step": np.float32(1),
    }
    model = catalogue.build(nodes, {"x": (F32, ["N", 4])}, {"y": (F32, ["N", 4])}, values)
    tracemalloc.start()
    try:
        graph = infer_fixed(model, {"x": (2, 4)}).graph
        assert tracemalloc.get_traced_memory()[1] < 16 << 20
    finally:
        tracemalloc.stop()
    assert shape_of(graph, "y") == [2, 4]


def test_nodes_that_a_converter_appended_are_put_where_they_are_read():
    model = reshaping()
    nodes = list(model.graph.node)
    del model.graph.node[:]
    model.graph.node.extend([*nodes[3:], *nodes[:3]])
    graph = infer_fixed(model, {"x": (4, 3, 10)}).graph
    assert shape_of(graph, "y") == [4, 30]
    assert in_order(nodes) == nodes


def test_a_cycle_ends():
    loop = [helper.make_node("Relu", ["a"], ["b"]), helper.make_node("Relu", ["b"], ["a"])]
    assert in_order([*loop, helper.make_node("Relu", ["x"], ["y"])])[1:] == loop


def test_a_node_whose_input_is_left_out_is_passed_over():
    nodes = [helper.make_node("ConstantOfShape", [""], ["made"]), helper.make_node("Relu", ["x"], ["y"])]
    model = catalogue.build(nodes, {"x": (F32, ["N", 4])}, {"y": (F32, ["N", 4])}, {})
    assert shape_of(infer_fixed(model, {"x": (2, 4)}).graph, "y") == [2, 4]
