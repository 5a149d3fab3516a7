"""Real TensorRT on a real GPU. See README.md for what must be there."""

import ctypes.util
import hashlib
import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1]))

from contract.onnx_subject import OnnxSubject
from gpu.plan_subject import PlanSubject
from gpu.tiles import PLANS
from models import catalogue
from tensorq_engines import Repository, create_engine
from tensorq_engines.tensorrt import flavour
from tensorq_engines.tensorrt.cuda import memory
from tensorq_engines.tensorrt.cuda.device import Device
from tensorq_engines.tensorrt.cuda.errors import CudaMissing
from tensorq_engines.tensorrt.cuda.status import runtime
from tensorq_engines.tensorrt.engine import TensorRtEngine
from tensorq_engines.tensorrt.lane import TensorRtLane
from tensorq_engines.tensorrt.options import LaneOptions

FOLDER = Path(__file__).parent
RESULT = pytest.StashKey[dict]()


def pytest_configure(config):
    pytest.register_assert_rewrite("contract.suite")
    config.stash[RESULT] = {"tests": {}, "facts": {}}


def pytest_collection_modifyitems(items):
    for item in items:
        if FOLDER in item.path.parents:
            item.add_marker("gpu")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    result = item.config.stash[RESULT]
    if report.when == "call" or report.outcome != "passed":
        result["tests"][item.nodeid.rpartition("/")[2]] = [report.outcome, round(report.duration, 2)]
    if report.when == "teardown":
        write(result)
    return report


def pytest_terminal_summary(terminalreporter, config):
    """Prints all that was found as one JSON."""
    result = config.stash[RESULT]
    if result["tests"]:
        write(result)
        terminalreporter.write_line(json.dumps(result, sort_keys=True, default=str))


def write(result):
    """Writes what was found so far to the file that TENSORQ_GPU_OUT names: a run may end in a crash."""
    outcomes = [outcome for outcome, _ in result["tests"].values()]
    result["counts"] = {outcome: outcomes.count(outcome) for outcome in sorted(set(outcomes))}
    if out := os.environ.get("TENSORQ_GPU_OUT"):
        Path(out).write_text(json.dumps(result, indent=1, sort_keys=True, default=str) + "\n")


@pytest.fixture(scope="session", autouse=True)
def device(request) -> Device:
    try:
        device = Device.require()
    except CudaMissing as exc:
        pytest.fail(f"tests marked gpu were selected, and there is {exc}", pytrace=False)
    found = flavour.find()
    request.config.stash[RESULT]["environment"] = {
        "date": time.strftime("%Y-%m-%d"),
        "device": device.name,
        "compute_capability": device.compute_capability,
        "flavour": found.name,
        "tensorrt": found.version_text,
        "cuda_driver": runtime("cudaDriverGetVersion"),
        "python": sys.version.split()[0],
        "cores": len(os.sched_getaffinity(0)),
    }
    return device


@pytest.fixture
def fact(request):
    """Keeps what a test measured, for the JSON at the end."""

    def keep(**values):
        request.config.stash[RESULT]["facts"].setdefault(request.node.name, {}).update(values)

    return keep


def folder(variable: str, what: str) -> Path | None:
    where = os.environ.get(variable)
    if where and not Path(where).is_dir():
        pytest.fail(f"{variable} is {where!r}, which is no folder: give it the folder {what}", pytrace=False)
    return Path(where) if where else None


@pytest.fixture(scope="session")
def plans() -> Path:
    return folder("TENSORQ_PLANS", "of *.plan") or pytest.skip("TENSORQ_PLANS names no folder of *.plan")


@pytest.fixture(scope="session")
def onnx_files() -> Path:
    return folder("TENSORQ_ONNX", "of rec.onnx and others") or pytest.skip(
        "TENSORQ_ONNX names no folder of *.onnx"
    )


@pytest.fixture(scope="session")
def build_folder() -> Path:
    """Where models are built; skips where there is no such folder, or only what runs plans."""
    if not os.environ.get("TENSORQ_BUILD"):
        pytest.skip("TENSORQ_BUILD names no folder to build in")
    if not has_builder():
        pytest.skip("the library of TensorRT's builder is not on LD_LIBRARY_PATH")
    where = Path(os.environ["TENSORQ_BUILD"])
    where.mkdir(parents=True, exist_ok=True)
    return where


def has_builder() -> bool:
    folders = [Path(one) for one in os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep) if one]
    folders += [Path(one, "tensorrt_libs") for one in sys.path]
    found = any(next(one.glob("libnvinfer_builder_resource*"), None) for one in folders if one.is_dir())
    return found or ctypes.util.find_library("nvinfer_builder_resource") is not None


@pytest.fixture
def open_model(plans) -> Iterator:
    """Opens the engine of a plan by name, loaded, and closes it at the end."""
    with ExitStack() as stack:

        def make(name, **settings):
            path = plans / f"{name}.plan"
            if not path.exists():
                pytest.skip(f"there is no {path}")
            return stack.enter_context(TensorRtEngine(name, path, **settings))

        yield make


@pytest.fixture
def write_model(build_folder):
    """Writes a model's folder, the same one for the same model, and returns its entry."""

    def make(model, settings="", name="m"):
        digest = hashlib.sha256(model.SerializeToString(deterministic=True) + settings.encode()).hexdigest()
        name = f"{name}-{digest[:8]}"
        if not (build_folder / name).exists():
            catalogue.write_repository(build_folder, {name: (model, f'engine = "tensorrt"\n{settings}')})
        return Repository(build_folder).get(name)

    return make


@pytest.fixture
def open_built(write_model) -> Iterator:
    """Opens the engine of an ONNX model, built by tensorq's builder, and closes it at the end."""
    with ExitStack() as stack:
        yield lambda *args, **kwargs: stack.enter_context(create_engine(write_model(*args, **kwargs)))


@pytest.fixture
def open_lane() -> Iterator:
    """Opens lanes with options, and closes them at the end."""
    with ExitStack() as stack:
        yield lambda slots=2, **options: stack.enter_context(TensorRtLane(slots, LaneOptions(**options)))


@pytest.fixture
def lane(open_lane):
    return open_lane()


@pytest.fixture
def eager(open_lane):
    """What graphs and shared memory are compared with: neither of them."""
    return open_lane(arena="private", graphs=False)


@pytest.fixture(params=PLANS)
def name(request) -> str:
    return request.param


@pytest.fixture(params=["plans", "built"])
def subject(request):
    if request.param == "built":
        return OnnxSubject("tensorrt", request.getfixturevalue("open_built"), slow_rows=16384)
    return PlanSubject(request.getfixturevalue("open_model"), request.getfixturevalue("eager"))


@pytest.fixture
def free_bytes():
    return lambda: memory.free_and_total()[0]
