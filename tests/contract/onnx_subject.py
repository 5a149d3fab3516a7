"""Kinds that run the models of the catalogue."""

from collections.abc import Callable, Mapping

import numpy as np
import onnx

from contract.subject import Case, Subject, Tile
from models import catalogue
from tensorq_engines import Engine, Lane, create_lane

OpenEngine = Callable[..., Engine]

AFFINE = "[[profile]]\nx = { min = [1, 8], opt = [4, 16], max = [8, 32] }\n"


class OnnxSubject(Subject):
    """Opens models from ONNX and the text of model.toml.

    Args:
        kind: the kind of engine.
        open_engine: returns a loaded engine.
        slow_rows: so many rows take the slow model milliseconds.
    """

    def __init__(self, kind: str, open_engine: OpenEngine, slow_rows: int = 256) -> None:
        self.kind = kind
        self._open = open_engine
        self._slow_rows = slow_rows

    def plain(self) -> Case:
        def make(rows: int, seed: int) -> Tile:
            return {"x": np.arange(rows * 16, dtype=np.float32).reshape(rows, 16) + np.float32(seed)}

        def want(tile: Tile) -> Mapping[str, np.ndarray]:
            return {"y": tile["x"] * 2 + 1}

        engine = self._open(catalogue.affine(), AFFINE)
        return Case(engine, 4, make, want, {"x": (1, 7)}, r"x \[1, 7\].*x \[1\.\.8, 8\.\.32\].*widen")

    def slow(self) -> Case:
        def make(rows: int, seed: int) -> Tile:
            row = np.arange(384, dtype=np.float32) + np.float32(1000 * seed)
            return {"x": np.tile(row, (rows, 1))}

        def want(tile: Tile) -> Mapping[str, np.ndarray]:
            return {"y": np.roll(tile["x"], 24, axis=1)}

        rows = self._slow_rows
        profile = f"x = {{ min = [1, 384], opt = [{rows}, 384], max = [{rows}, 384] }}"
        # TF32 would round what a rotation must leave as it is.
        engine = self._open(catalogue.slow(), f"tensorrt.tf32 = false\n[[profile]]\n{profile}\n")
        return Case(engine, rows, make, want)

    def new_lane(self, slot_count: int = 2) -> Lane:
        return create_lane(self.kind, slot_count=slot_count)


def wide_profile(model: onnx.ModelProto) -> str:
    """Wide ranges for every free axis, as model.toml has them: TensorRT takes no model without."""
    ranges = []
    for item in model.graph.input:
        dims = item.type.tensor_type.shape.dim
        if not all(dim.HasField("dim_value") for dim in dims):
            words = [
                f"{word} = {[dim.dim_value or (other if axis else rows) for axis, dim in enumerate(dims)]}"
                for word, rows, other in (("min", 1, 1), ("opt", 8, 16), ("max", 32, 512))
            ]
            ranges.append(f"{item.name} = {{ {', '.join(words)} }}")
    return "\n[[profile]]\n" + "\n".join(ranges) if ranges else ""
