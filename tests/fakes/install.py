"""Puts the fake GPU and the fake TensorRT where the real ones would be imported from."""

from __future__ import annotations

import sys
import threading
from functools import cache

from fakes.builder import add_builder
from fakes.cuda import FakeCuda
from fakes.tensorrt import make_module
from tensorq_engines.tensorrt import flavour
from tensorq_engines.tensorrt.cuda import device, status


def install(monkeypatch, cuda=None):
    """Returns the module ``tensorrt`` that the engine will find; its ``cuda`` is the GPU."""
    cuda = FakeCuda() if cuda is None else cuda
    module = make_module(cuda)
    add_builder(module)
    monkeypatch.setitem(sys.modules, "cuda.bindings.runtime", cuda.runtime)
    monkeypatch.setitem(sys.modules, "cuda.bindings.driver", cuda.driver)
    monkeypatch.setitem(sys.modules, "tensorrt", module)
    # What the process keeps for its life is kept for this test only.
    monkeypatch.setattr(status, "_fatal", None)
    monkeypatch.setattr(device, "_local", threading.local())
    monkeypatch.setattr(device, "_probe", cache(device._probe.__wrapped__))
    monkeypatch.setattr(flavour, "_open", cache(flavour._open.__wrapped__))
    return module
