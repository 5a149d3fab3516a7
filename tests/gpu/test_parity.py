"""The plans that were given, in FP16, against ONNX Runtime on the CPU with the ONNX files they came from."""

import numpy as np
import pytest

from gpu.parity import Reference, as_facts, compare
from gpu.tiles import shapes

HALF_ERROR, HALF_COSINE = 2e-2, 0.999

CASES = [
    ("rec", 1, (320,)),
    ("rec", 8, (320,)),
    ("rec", 2, (64,)),
    ("rec", 3, (960,)),
    ("cls", 8, ()),
    ("det", 1, (736, 736)),
    ("det", 2, (320, 640)),
]


def picture(engine, rows, lengths):
    """Smooth random pictures with bright strokes: on noise alone a detector's output has no range."""
    ((name, shape),) = shapes(engine, rows, lengths).items()
    rng = np.random.default_rng(rows)
    height, width = shape[2:]
    y, x = np.mgrid[:height, :width].astype(np.float32)
    found = np.empty(shape, np.float32)
    for row in range(rows):
        found[row] = np.sin(x / rng.uniform(3, 40)) * np.cos(y / rng.uniform(3, 12)) > rng.uniform(0, 0.8)
    return {name: found * 2 - 1}


@pytest.mark.parametrize(("name", "rows", "lengths"), CASES)
def test_given_plans_agree_with_onnxruntime(open_model, onnx_files, lane, name, rows, lengths, fact):
    path = onnx_files / f"{name}.onnx"
    if not path.exists():
        pytest.skip(f"there is no {path}")
    engine = open_model(name)
    inputs = picture(engine, rows, lengths)
    found = compare(lane.run(engine, inputs), Reference(path).run(inputs))
    fact(parity=as_facts(found))
    for one in found.values():
        assert one.error <= HALF_ERROR
        assert one.cosine >= HALF_COSINE
