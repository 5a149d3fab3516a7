"""What is ONNX Runtime's own."""

import os
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper

from models import catalogue
from tensorq_engines import create_lane

from .conftest import engine_of

STATM = Path("/proc/self/statm")
LAYERS, SHAPES = 100, 500


def convolutions():
    """x f32[N, 4, 1, W] -> y f32[N, 4, 1, W], in many layers."""
    names = ["x", *(f"h{layer}" for layer in range(LAYERS - 1)), "y"]
    nodes = []
    for layer in range(LAYERS):
        given, made = names[layer : layer + 2]
        nodes += [
            helper.make_node("Conv", [given, "w"], [f"c{layer}"], pads=[0, 1, 0, 1]),
            helper.make_node("Add", [f"c{layer}", given], [made]),
        ]
    shape = (TensorProto.FLOAT, ["N", 4, 1, "W"])
    return catalogue.build(nodes, {"x": shape}, {"y": shape}, {"w": np.zeros((4, 4, 1, 3), np.float32)})


def resident_bytes():
    return int(STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_ever_new_shapes_do_not_add_up(tmp_path):
    with engine_of("onnxruntime", tmp_path, convolutions()) as engine, create_lane("onnxruntime") as lane:

        def run(width):
            lane.run(engine, {"x": np.zeros((1, 4, 1, width), np.float32)})

        for width in (*range(16, 36), 600):
            run(width)
        before = resident_bytes()
        for width in range(16, 16 + SHAPES):
            run(width)
        # With a memory pattern for each it would be 12 KiB a shape.
        assert resident_bytes() - before < SHAPES * 4 * 1024
