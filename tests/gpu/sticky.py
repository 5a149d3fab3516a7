"""Ends this process's use of the GPU on purpose, and prints as JSON what every later call said.

python3.11 tests/gpu/sticky.py PLAN
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / part) for part in ("tests", "producer", "engines")]

from gpu.tiles import fill, shapes, tile  # noqa: E402
from tensorq_engines import EngineError, EngineFatal  # noqa: E402
from tensorq_engines.tensorrt.cuda.status import driver  # noqa: E402
from tensorq_engines.tensorrt.engine import TensorRtEngine  # noqa: E402
from tensorq_engines.tensorrt.lane import TensorRtLane  # noqa: E402

FAULT = b"""
.version 7.0
.target sm_75
.address_size 64
.visible .entry fault()
{
    .reg .u64 %address;
    .reg .u32 %value;
    mov.u64 %address, 16;
    mov.u32 %value, 0;
    st.global.u32 [%address], %value;
    ret;
}
\0"""
"""A kernel that writes to an address where nothing is; the driver translates it."""


def main() -> int:
    plan = Path(sys.argv[1])
    engine, other = TensorRtEngine("one", plan), TensorRtEngine("other", plan)
    lane, second = TensorRtLane(2), TensorRtLane(2)
    inputs = tile_of(engine)
    for each, on in ((engine, lane), (other, second)):
        each.load()
        for _ in range(2):
            on.run(each, inputs)
    filled, held = fill(lane, engine, inputs), fill(second, other, inputs)
    how = provoke(lane, engine)
    said: dict[str, Any] = {"how": how}
    steps: dict[str, Callable[[], Any]] = {}
    try:
        lane.submit(filled)
        steps = {"wait": filled.wait, "wait again": filled.wait}
    except EngineFatal as exc:  # whoever looked after the fault knew already
        said["submit"] = str(exc)
    steps |= {
        "acquire": lambda: lane.acquire(engine, shapes(engine, 8)),
        "submit on the other lane": lambda: second.submit(held),
        "acquire on the other lane": lambda: second.acquire(other, shapes(other, 8)),
        "load": TensorRtEngine("again", plan).load,
        "run on a new lane": lambda: TensorRtLane(2).run(engine, inputs),
    }
    for what, call in steps.items():
        said[what] = expect_fatal(call)
    for thing in (engine, other, lane, second):
        thing.close()
        thing.close()
    said["closed"] = True
    print(json.dumps(said))
    return 0


def tile_of(engine: TensorRtEngine) -> dict[str, np.ndarray]:
    """Inputs of eight rows."""
    found: dict[str, np.ndarray] = tile(engine, 8)
    return found


def provoke(lane: TensorRtLane, engine: TensorRtEngine) -> str:
    """Makes the lane's stream touch memory that is not there; returns how."""
    stream = lane._device.stream.number
    try:
        image = np.frombuffer(FAULT, np.uint8)
        kernel = driver("cuModuleGetFunction", driver("cuModuleLoadData", image.ctypes.data), b"fault")
        driver("cuLaunchKernel", kernel, 1, 1, 1, 1, 1, 1, 0, stream, 0, 0)
        return "a kernel of our own"
    except EngineFatal:
        raise
    except EngineError as exc:
        # The driver translates no kernels here: TensorRT's own write to where nothing is.
        seat = lane._seats[engine]
        context = next(iter(seat._contexts.values()))
        context.set_addresses({port.name: 1 << 40 for port in engine.model.native.outputs})
        context.enqueue()
        return f"a run with a bad address, because of {exc}"


def expect_fatal(call: Callable[[], Any]) -> str:
    """Returns the words of the `EngineFatal` that a call must raise."""
    try:
        call()
    except EngineFatal as exc:
        return str(exc)
    except EngineError as exc:
        raise SystemExit(f"got {type(exc).__name__}: {exc}, expected EngineFatal") from exc
    raise SystemExit("got no error, expected EngineFatal")


if __name__ == "__main__":
    sys.exit(main())
