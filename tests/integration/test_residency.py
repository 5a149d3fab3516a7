"""A real worker with more models than its budget holds, and with one that must be there and is not."""

import os
import signal
import time

import numpy as np
import pytest
from onnx import TensorProto, helper

from fixtures.faulty import launch_faulty
from fixtures.workers import wait_until, workers
from models import catalogue
from tensorq import Client, JobFailed, ModelState

pytestmark = pytest.mark.integration

NOW = 'engine = "onnxruntime"\n[batching]\nmax_delay_ms = 0\n'
PROFILE = "[[profile]]\nx = { min = [1, 128], opt = [4, 128], max = [8, 128] }\n"
NAMES = ("a", "b", "c", "d")


def scaled(factor: float, columns: int = 1000):
    """x f32[N, 128] -> y f32[N, columns], half a MiB of weights: each y is the sum of x, times a factor."""
    f32 = TensorProto.FLOAT
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    weights = {"w": np.full((128, columns), factor, np.float32)}
    return catalogue.build(nodes, {"x": (f32, ["N", 128])}, {"y": (f32, ["N", columns])}, weights)


@pytest.fixture
def fleet(redis, redis_server, tmp_path_factory):
    models = {name: (scaled(n + 1), NOW + PROFILE) for n, name in enumerate(NAMES)}
    models["large"] = (scaled(1.0, 10_000), NOW + PROFILE)
    repository = catalogue.write_repository(tmp_path_factory.mktemp("models"), models)
    with workers(redis_server.url, repository, tmp_path_factory.mktemp("logs")) as fleet:
        yield fleet


@pytest.fixture
def client(redis_server):
    with Client(redis_server.url) as client:
        yield client


def test_models_come_and_go_under_a_budget_and_no_job_is_lost(fleet, client):
    worker = fleet.start("--budget-mib", "1", "--load", "lru", *NAMES, "large")
    x = np.ones((1, 128), np.float32)
    jobs = [(n, client.submit(name, {"x": x})) for _ in range(25) for n, name in enumerate(NAMES)]
    refused = client.submit("large", {"x": x})
    for n, job in jobs:
        np.testing.assert_array_equal(job.result(timeout=30)["y"], np.full((1, 1000), 128.0 * (n + 1)))
    with pytest.raises(JobFailed, match=r"budget") as failed:
        refused.result(timeout=30)
    assert failed.value.kind == "ModelDoesNotFit"
    assert worker.stop() == 0
    assert worker.log.count("evicted") >= 3


def test_what_fits_is_there_from_the_start_and_the_listing_says_so(fleet, client):
    fleet.start("--budget-mib", "1", *NAMES)
    states = {info.name: info.state for info in client.models()}
    assert list(states.values()).count(ModelState.READY) == 1
    seen = {info.name: info.residency for info in client.models()}
    resident = next(name for name, state in states.items() if state is ModelState.READY)
    assert (seen[resident].loads, seen[resident].resident_bytes >= 512_000) == (1, True)
    assert all(seen[name].resident_bytes == 0 for name in NAMES if name != resident)


@pytest.mark.parametrize("setting", ["model.toml", "command line"])
def test_an_eager_model_that_cannot_be_loaded_ends_the_start_with_its_reason(fleet, setting):
    folder = fleet.models / "b"
    if setting == "model.toml":
        (folder / "model.toml").write_text(NOW + PROFILE + "[residency]\nload = 'eager'\n")
    (folder / "model.onnx").write_bytes(b"\xff" * 100)
    more = () if setting == "model.toml" else ("--load", "eager")
    worker = launch_faulty(fleet, *more, "a", "b")
    assert worker.wait() == os.EX_CONFIG
    assert "tensorq worker: model 'b' is to be there from the start (load = 'eager')" in worker.log


def test_a_worker_told_twice_to_stop_does_not_wait_for_a_load(fleet, client):
    worker = launch_faulty(fleet, "--load", "lru", "a", load_s="60").wait_ready()
    job = client.submit("a", {"x": np.ones((1, 128), np.float32)})
    wait_until(lambda: any(info.state is ModelState.LOADING for info in client.models()) or "a" in worker.log)
    time.sleep(1.0)
    worker.process.send_signal(signal.SIGTERM)
    time.sleep(1.2)
    began = time.monotonic()
    worker.process.send_signal(signal.SIGTERM)
    worker.wait(10)
    assert time.monotonic() - began < 5
    fleet.start("a")
    assert job.result(timeout=30)["y"].shape == (1, 1000)
