"""Many jobs through a small window, with a stand-in for the worker."""

import numpy as np
import pytest

from fixtures.finisher import FakeWorker, fail
from tensorq import Client, ModelInfo, Signature, TensorSpec, models
from tensorq.errors import QueueFull, UnknownModel
from tensorq.submission import Limits
from tensorq_worker.cli import pump as module
from tensorq_worker.cli.inputs import find_jobs
from tensorq_worker.cli.pump import Pump
from tensorq_worker.cli.results import Results

pytestmark = pytest.mark.integration

NET = Signature((TensorSpec("x", "float32", ("n", 2)),), (TensorSpec("x", "float32", ("n", 2)),))


def publish(redis, limits=None):
    models.publish(redis, ModelInfo("net", NET, (1,), limits=limits or Limits()), ttl_s=60)


@pytest.fixture
def jobs(save, tmp_path):
    for n in range(40):
        save(f"in/{n:02}.npy", np.full((1, 2), n, np.float32))
    return find_jobs([f"x={tmp_path}/in/*.npy"], lambda: "x")


@pytest.fixture
def results(tmp_path):
    return Results(tmp_path / "out")


@pytest.fixture
def pump(redis, results, monkeypatch):
    """Makes pumps with small windows; `stored` and `ticks` tell what they did."""
    monkeypatch.setattr(module, "SLICE_JOBS", 4)
    monkeypatch.setattr(module, "WINDOW_JOBS", 8)
    monkeypatch.setattr(module, "PAUSE_S", 0.01)
    with Client(redis) as client:

        def make(wait=True, model="net"):
            made = Pump(client, model, {}, results, lambda job: made.stored.append(job.id), wait, make_tick)
            made.stored, make.ticks, make.most = [], 0, 0
            make.made = made
            return made

        def make_tick():
            make.ticks += 1
            make.most = max(make.most, len(make.made._pending))

        yield make


def saved(tmp_path):
    return {path.stem: np.load(path)["x"][0, 0] for path in (tmp_path / "out").iterdir()}


def test_every_result_is_written_under_its_files_name(redis, pump, jobs, results, tmp_path):
    publish(redis)
    with FakeWorker(redis, "net"):
        pump().run(jobs)
    assert results.failures == []
    assert saved(tmp_path) == {f"{n:02}": n for n in range(40)}
    assert pump.ticks == 40


def test_no_more_than_a_window_of_jobs_is_under_way(redis, pump, jobs):
    publish(redis)
    with FakeWorker(redis, "net"):
        pump().run(jobs)
    assert 0 < pump.most <= module.WINDOW_JOBS


def test_a_full_queue_is_waited_for(redis, pump, jobs, results, tmp_path):
    publish(redis, Limits(max_jobs=3))
    with FakeWorker(redis, "net", batch=2):
        pump().run(jobs)
    assert results.failures == []
    assert len(saved(tmp_path)) == 40


def test_a_full_queue_is_waited_for_without_collecting(redis, pump, jobs):
    publish(redis, Limits(max_jobs=3))
    one = pump(wait=False)
    with FakeWorker(redis, "net", batch=2):
        one.run(jobs)
    assert len(set(one.stored)) == 40
    assert pump.ticks == 40


def test_a_job_that_no_queue_can_hold_ends_the_wait(redis, pump, jobs, monkeypatch):
    monkeypatch.setattr(module, "STUCK_S", 0.1)
    publish(redis, Limits(max_bytes=10))
    with pytest.raises(QueueFull, match="10 bytes stored"):
        pump().run(jobs[:1])


def test_a_bad_file_among_many_fails_alone(redis, pump, jobs, results, save, tmp_path):
    publish(redis)
    save("in/07.npy", np.zeros((1, 3), np.float32))
    (tmp_path / "in" / "20.npy").write_bytes(b"junk")
    with FakeWorker(redis, "net"):
        pump().run(jobs)
    assert len(saved(tmp_path)) == 38
    shape, junk = sorted(results.failures)
    assert shape.endswith("07.npy: input 'x': got shape (1, 3), expected (rows, 2)")
    assert "20.npy: is neither" in junk
    assert pump.ticks == 40


def test_a_failed_job_is_listed_with_its_file_its_id_and_the_workers_words(redis, pump, jobs, results):
    publish(redis)
    one = pump()
    one._submit([(jobs[0], jobs[0].load())])
    (job_id,) = one.stored
    fail(redis, "net", [job_id], "tensorq_engines.TileFailed: index out of range")
    one.run([])
    assert results.failures == [f"{jobs[0]}: job {job_id} failed: TileFailed: index out of range"]


def test_an_unknown_model_ends_it_at_once(redis, pump, jobs, results):
    publish(redis)
    with pytest.raises(UnknownModel, match="did you mean 'net'"):
        pump(model="nett").run(jobs)
    assert results.failures == []


def test_jobs_under_way_are_named_where_it_cannot_go_on(redis, pump, jobs, results, monkeypatch):
    monkeypatch.setattr(module, "STUCK_S", 0.0)
    publish(redis)
    one = pump()
    one._submit([(jobs[0], jobs[0].load())])
    monkeypatch.setattr(one, "_collect", lambda down_to: (_ for _ in ()).throw(QueueFull("full")))
    with pytest.raises(QueueFull):
        one.run([])
    assert results.failures == [f"{jobs[0]}: job {one.stored[0]} was submitted; its result was not collected"]


def test_a_dtype_is_refused_in_words_of_the_command_line(redis, pump, results, save):
    publish(redis)
    path = save("wide.npy", np.ones((1, 2)))
    pump().run(find_jobs([f"x={path}"], lambda: "x"))
    (failure,) = results.failures
    assert "convert it with .astype('float32') or pass --cast" in failure
