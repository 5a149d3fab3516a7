"""int8: ONNX Runtime quantizes, TensorRT-RTX takes it."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto

from models import catalogue
from models.networks import convolutions
from tensorq_engines import BuildFailed
from tensorq_engines.tensorrt.builder import find_or_build
from tensorq_engines.tensorrt.builder.calibration.calibrate import calibrate
from tensorq_engines.tensorrt.builder.calibration.result import graph_path, note_path

INT8 = "precision = 'int8'\n"
WIRE = "[inputs.x]\nwire = 'uint8'\nscale = [0.01, 0.02, 0.03]\nmean = 100\n"


@pytest.fixture
def data(tmp_path):
    def save(rows=40, dtype=np.float32, **arrays):
        rng = np.random.default_rng(2)
        images = rng.integers(0, 256, (rows, 3, 16, 16)).astype(dtype)
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.npz"
        np.savez(path, **(arrays or {"x": images}))
        return path

    return save


@pytest.mark.parametrize("opset", [11, 17])
@pytest.mark.parametrize("method", ["minmax", "percentile"])
def test_the_graph_is_what_tensorrt_takes_and_computes_nearly_the_same(write, data, flavour, opset, method):
    entry = write(convolutions(opset), INT8)
    file = data()
    made = calibrate(entry, [file, data(rows=3)], method)
    assert (made.rows, made.method) == (43, method)
    model = onnx.load(str(graph_path(entry)))
    types = {item.name: item.data_type for item in model.graph.initializer}
    pairs = [node for node in model.graph.node if node.op_type == "DequantizeLinear"]
    assert len(pairs) == 6, "input and weights of two convolutions and a Gemm"
    assert all(types.get(node.input[0]) != TensorProto.INT32 for node in pairs)
    assert {types[node.input[2]] for node in pairs} == {TensorProto.INT8}
    for node in pairs:
        zero = next(item for item in model.graph.initializer if item.name == node.input[2])
        assert not onnx.numpy_helper.to_array(zero).any(), "TensorRT takes symmetric ranges only"
    assert "BatchNormalization" not in {node.op_type for node in model.graph.node}
    tile = {"x": np.load(file)["x"]}
    results = [
        onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"]).run(None, tile)[0]
        for path in (entry.source, graph_path(entry))
    ]
    assert np.abs(results[0] - results[1]).max() < 0.05 * np.ptp(results[0])
    plan = find_or_build(entry, flavour, None)
    assert plan.sidecar.precision == "int8"
    assert plan.read() != find_or_build(write(convolutions(opset)), flavour, None).read()


def test_data_is_what_jobs_send_and_is_normalised_once(write, data, flavour):
    calibrate(write(convolutions(), INT8 + WIRE), [data(dtype=np.uint8)])
    scales = {
        item.name: onnx.numpy_helper.to_array(item)
        for item in onnx.load(str(graph_path(write(convolutions(), INT8 + WIRE)))).graph.initializer
    }
    # The largest value is (255 - 100) * 0.03, and an int8 step is a 127th of it.
    np.testing.assert_allclose(scales["x_scale"], 155 * 0.03 / 127, rtol=0.02)
    plan = find_or_build(write(convolutions(), INT8 + WIRE), flavour, None)
    assert plan.sidecar.signature.inputs[0].dtype == "uint8"


def test_int8_without_calibration_is_refused_with_what_to_run(build):
    with pytest.raises(BuildFailed, match=r"there is no model\.int8\.json; run `tensorq calibrate .*/m DATA"):
        build(convolutions(), INT8)


def test_a_calibration_of_another_model_or_another_wire_is_refused(write, data, flavour):
    calibrate(write(convolutions(), INT8), [data()])
    with pytest.raises(BuildFailed, match=r"was made before the \[inputs\] in model\.toml changed; run"):
        find_or_build(write(convolutions(), INT8 + WIRE), flavour, None)
    other = convolutions()
    other.producer_name = "other"
    with pytest.raises(BuildFailed, match="was made before the model changed; run"):
        find_or_build(write(other, INT8), flavour, None)


def test_a_damaged_calibration_is_refused(write, data, flavour):
    entry = write(convolutions(), INT8)
    calibrate(entry, [data()])
    graph_path(entry).write_bytes(b"damaged")
    with pytest.raises(BuildFailed, match=r"model\.int8\.onnx has sha256"):
        find_or_build(entry, flavour, None)
    note_path(entry).write_text("{}")
    with pytest.raises(BuildFailed, match=r"model\.int8\.json cannot be read"):
        find_or_build(entry, flavour, None)


def test_a_model_with_nothing_to_quantize_is_refused(write, data):
    with pytest.raises(BuildFailed, match="nothing was quantized"):
        calibrate(write(catalogue.affine(), INT8), [data(x=np.ones((2, 4), np.float32))])


def test_data_that_is_not_the_models_is_refused_with_its_file(write, data, tmp_path):
    entry = write(convolutions(), INT8)
    wrong = data(x=np.ones((2, 3, 16, 8), np.float32))
    with pytest.raises(BuildFailed, match=rf"{wrong.name}: input 'x': got shape \(2, 3, 16, 8\)"):
        calibrate(entry, [wrong])
    with pytest.raises(BuildFailed, match="unknown input 'z'"):
        calibrate(entry, [data(z=np.ones(3))])
    (tmp_path / "text.npz").write_text("hello")
    np.save(tmp_path / "pickled.npz.npy", np.array([{}], object))
    np.save(tmp_path / "plain.npy", np.ones((2, 3, 16, 16), np.float32))
    damaged = tmp_path / "damaged.npz"
    np.savez_compressed(damaged, x=np.arange(2 * 3 * 16 * 16, dtype=np.float32).reshape(2, 3, 16, 16))
    content = bytearray(damaged.read_bytes())
    content[100:200] = b"\xff" * 100
    damaged.write_bytes(content)
    for name in ("text.npz", "pickled.npz.npy", "gone.npz", "plain.npy", "damaged.npz"):
        with pytest.raises(BuildFailed, match=f"{name} is no calibration data: .*numpy.savez"):
            calibrate(entry, [tmp_path / name])


def test_a_fixed_batch_takes_whole_tiles(write, data):
    model = convolutions()
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 4
    model.graph.output[0].type.tensor_type.shape.dim[0].dim_value = 4
    assert calibrate(write(model, INT8), [data(rows=10)]).rows == 8


def test_no_rows_at_all_are_refused(write, data):
    model = convolutions()
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 4
    model.graph.output[0].type.tensor_type.shape.dim[0].dim_value = 4
    with pytest.raises(BuildFailed, match="no rows"):
        calibrate(write(model, INT8), [data(rows=3)])
