"""The TensorRT engine over a GPU and a TensorRT in ordinary memory; see tests/fakes."""

from __future__ import annotations

from contextlib import ExitStack

import numpy as np
import pytest

from fakes.cuda import FakeCuda
from fakes.install import install
from fakes.tensorrt import make_plan
from models import catalogue
from tensorq_engines.base.profile import Profile
from tensorq_engines.tensorrt.engine import TensorRtEngine
from tensorq_engines.tensorrt.lane import TensorRtLane
from tensorq_engines.tensorrt.options import LaneOptions

from ..conftest import engine_of

AFFINE = Profile.of(x=([1, 4], [8, 16], [32, 64]))


@pytest.fixture
def fake(monkeypatch):
    """The module ``tensorrt``; its ``cuda`` is the GPU and its ``behaviour`` can be set."""
    return install(monkeypatch)


@pytest.fixture
def small_fake(monkeypatch):
    """Makes the fake anew on a GPU of its own kind."""
    return lambda **gpu: install(monkeypatch, FakeCuda(**gpu))


@pytest.fixture
def open_plan(fake, tmp_path):
    """Opens the engine of a plan, loaded, and closes it at the end; default: y = 2x + 1."""
    with ExitStack() as stack:

        def make(model=None, profiles=(AFFINE,), plan=None, **settings):
            path = tmp_path / f"m{len(list(tmp_path.iterdir()))}.plan"
            path.write_bytes(
                make_plan(catalogue.affine() if model is None else model, profiles, **(plan or {}))
            )
            return stack.enter_context(TensorRtEngine(path.stem, path, **settings))

        yield make


@pytest.fixture
def open_built(fake, tmp_path):
    """Opens the engine of an ONNX file, which tensorq's builder builds a plan from, and closes it."""
    with ExitStack() as stack:

        def make(model, settings=""):
            engine = engine_of("tensorrt", tmp_path, model, settings)
            return stack.enter_context(engine)

        yield make


@pytest.fixture
def open_lane(fake):
    """Opens lanes that keep every graph, unless told otherwise, and closes them at the end."""
    with ExitStack() as stack:

        def make(slots=2, **options):
            return stack.enter_context(TensorRtLane(slots, LaneOptions(**{"graph_trials": 0, **options})))

        yield make


@pytest.fixture
def run():
    """Runs a tile of affine and checks it."""

    def once(lane, engine, rows, width=16, start=0.0):
        x = np.arange(rows * width, dtype=np.float32).reshape(rows, width) + np.float32(start)
        np.testing.assert_array_equal(lane.run(engine, {"x": x})["y"], x * 2 + 1)

    return once


@pytest.fixture
def fill():
    """A slot filled with the same number everywhere."""

    def take(lane, engine, rows=8, width=16, value=1.0):
        slot = lane.acquire(engine, {"x": (rows, width)})
        assert slot is not None
        slot.inputs["x"][...] = value
        return slot

    return take
