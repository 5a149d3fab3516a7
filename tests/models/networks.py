"""Image networks of the sizes that are measured, with seeded random weights; made where they are needed."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import NodeProto, TensorProto, helper

from models import catalogue

SIDE = 224


class Network:
    """A graph that is written layer by layer; a layer's output is named by its number."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.nodes: list[NodeProto] = []
        self.weights: dict[str, np.ndarray] = {}

    def add(self, kind: str, *inputs: str, **attributes: object) -> str:
        output = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [output], **attributes))
        return output

    def conv(self, x: str, shape: tuple[int, int, int], stride: int = 1, gain: float = 2.0) -> str:
        """A convolution ``(channels in, channels out, kernel)`` with a bias, padded to keep its size."""
        into, out, kernel = shape
        name = f"c{len(self.nodes)}"
        values = self.rng.standard_normal((out, into, kernel, kernel), np.float32)
        self.weights[f"{name}w"] = values * np.sqrt(gain / (into * kernel * kernel), dtype=np.float32)
        self.weights[f"{name}b"] = self.rng.standard_normal(out, np.float32) * np.float32(0.1)
        pads = [kernel // 2] * 4
        return self.add("Conv", x, f"{name}w", f"{name}b", strides=[stride] * 2, pads=pads)

    def relu(self, *args: object, **kwargs: object) -> str:
        """A convolution and its activation."""
        return self.add("Relu", self.conv(*args, **kwargs))  # type: ignore[arg-type]

    def residual(self, x: str, channels: int) -> str:
        """A block of two 1 x 1 convolutions: its input stays alive until it is added to the output."""
        inner = self.conv(self.relu(x, (channels, channels, 1)), (channels, channels, 1), gain=0.2)
        return self.add("Relu", self.add("Add", inner, x))

    def finish(self, x: str, channels: int, classes: int, side: int = SIDE) -> onnx.ModelProto:
        """Pools, classifies, and returns input f32[N, 3, side, side] -> logits f32[N, classes]."""
        self.weights["fcw"] = self.rng.standard_normal((channels, classes), np.float32) * np.float32(0.05)
        self.weights["fcb"] = np.zeros(classes, np.float32)
        flat = self.add("Flatten", self.add("GlobalAveragePool", x))
        self.nodes.append(helper.make_node("Gemm", [flat, "fcw", "fcb"], ["logits"]))
        f32 = TensorProto.FLOAT
        inputs = {"input": (f32, ["N", 3, side, side])}
        return catalogue.build(self.nodes, inputs, {"logits": (f32, ["N", classes])}, self.weights)


def tiny() -> onnx.ModelProto:
    """0.06 M parameters and large activations: 112 x 112 x 64 and 112 x 112 x 128 in turn."""
    net = Network(1)
    x = net.relu("input", (3, 64, 3), stride=2)
    for _ in range(3):
        x = net.relu(net.relu(x, (64, 128, 1)), (128, 64, 1))
    return net.finish(net.relu(x, (64, 128, 1)), 128, 10)


def mid() -> onnx.ModelProto:
    """4.5 M parameters: a plain chain of convolutions."""
    net = Network(2)
    x = "input"
    layers = [(3, 64, 2), (64, 128, 1), (128, 256, 2), (256, 256, 1), (256, 512, 2), (512, 512, 1)]
    for into, out, stride in layers:
        x = net.relu(x, (into, out, 3), stride=stride)
    return net.finish(x, 512, 10)


def resnet18() -> onnx.ModelProto:
    """ResNet-18 with its batch norms folded in: 11.7 M parameters."""
    net = Network(3)
    x = net.relu("input", (3, 64, 7), stride=2)
    x = net.add("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    into = 64
    for out in (64, 128, 256, 512):
        for block in range(2):
            stride = 2 if block == 0 and out > 64 else 1
            skip = x if into == out and stride == 1 else net.conv(x, (into, out, 1), stride, gain=1.0)
            # A small gain, because without batch norms eight residuals would grow without bound.
            inner = net.conv(net.relu(x, (into, out, 3), stride=stride), (out, out, 3), gain=0.2)
            x = net.add("Relu", net.add("Add", inner, skip))
            into = out
    return net.finish(x, 512, 1000)


def tiny_cnn(side: int = SIDE) -> onnx.ModelProto:
    """0.09 M parameters that keep three tensors of 128 channels at half the side alive at once."""
    net = Network(4)
    x = net.relu("input", (3, 128, 3), stride=2)
    for _ in range(2):
        x = net.residual(x, 128)
    return net.finish(net.relu(x, (128, 128, 1)), 128, 10, side)


def mid_cnn(side: int = SIDE) -> onnx.ModelProto:
    """4.5 M parameters: begins as `tiny_cnn` does, and goes on with fewer and wider rows."""
    net = Network(5)
    x = net.residual(net.relu("input", (3, 128, 3), stride=2), 128)
    for into, out, stride in [(128, 256, 2), (256, 512, 2), (512, 512, 2), (512, 128, 1)]:
        x = net.relu(x, (into, out, 3), stride=stride)
    return net.finish(x, 128, 10, side)


def convolutions(opset: int = catalogue.OPSET) -> onnx.ModelProto:
    """x f32[N, 3, 16, 16] -> y f32[N, 10]: two convolutions with batch norm and a residual, and a Gemm."""
    rng = np.random.default_rng(1)

    def weights(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape).astype(np.float32) * np.float32(0.2)

    norm = {
        "scale": weights(8) + 1,
        "shift": weights(8),
        "average": weights(8),
        "variance": weights(8) ** 2 + 1,
    }
    nodes = [
        helper.make_node("Conv", ["x", "w1", "b1"], ["c1"], pads=[1] * 4),
        helper.make_node("BatchNormalization", ["c1", *norm], ["n1"]),
        helper.make_node("Relu", ["n1"], ["r1"]),
        helper.make_node("Conv", ["r1", "w2", "b2"], ["c2"], pads=[1] * 4),
        helper.make_node("Add", ["c2", "r1"], ["s"]),
        helper.make_node("Relu", ["s"], ["r2"]),
        helper.make_node("GlobalAveragePool", ["r2"], ["p"]),
        helper.make_node("Flatten", ["p"], ["f"]),
        helper.make_node("Gemm", ["f", "w3", "b3"], ["y"]),
    ]
    values = {
        "w1": weights(8, 3, 3, 3),
        "b1": weights(8),
        "w2": weights(8, 8, 3, 3),
        "b2": weights(8),
        "w3": weights(8, 10),
        "b3": weights(10),
        **norm,
    }
    f32 = TensorProto.FLOAT
    model = catalogue.build(nodes, {"x": (f32, ["N", 3, 16, 16])}, {"y": (f32, ["N", 10])}, values)
    model.opset_import[0].version = opset
    return model


ALL = {model.__name__: model for model in (tiny, mid, resnet18)}
"""Networks by name, each a function without arguments."""

SIZED = {model.__name__: model for model in (tiny_cnn, mid_cnn)}
"""Networks whose images may have another side, which is the argument."""
