import numpy as np
import pytest

from fixtures.jobs import claimed
from models import catalogue
from tensorq.models import ModelState
from tensorq_engines import EngineOptions, ModelLoadFailed, Repository, RepositoryError, ShapeRefused
from tensorq_worker import served as module
from tensorq_worker.pools import Pools
from tensorq_worker.served import FIRST_COOLDOWN_S, LAST_COOLDOWN_S, open_models

REFERENCE = 'engine = "reference"\n'
PROFILE = "[[profile]]\nx = { min = [1, 8], opt = [4, 16], max = [8, 32] }\n"


class Clock:
    now = 1000.0

    def monotonic(self):
        return self.now

    time = monotonic


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr("tensorq_worker.pools.time", clock)
    return clock


@pytest.fixture
def serve(tmp_path):
    pools = Pools()

    def serve(model, settings=REFERENCE):
        catalogue.write_repository(tmp_path, {"net": (model, settings)})
        return open_models(Repository(tmp_path), ["net"], EngineOptions(), pools)["net"]

    yield serve
    pools.close()


@pytest.fixture
def broken(clock, serve, monkeypatch):
    """A model that is described and does not load; ``mend`` is called to change that."""
    served = serve(catalogue.affine())
    engine = served.engine
    load, attempts = engine.load, []

    def fail():
        attempts.append(1)
        raise ModelLoadFailed("model 'net': no memory")

    monkeypatch.setattr(engine, "load", fail)
    return served, attempts, lambda: monkeypatch.setattr(engine, "load", load)


def test_a_model_is_described_without_being_loaded(serve):
    served = serve(catalogue.affine())
    assert served.info().signature is None
    assert served.largest == 1
    assert served.intake.signature == served.engine.signature
    assert served.largest == 32
    info = served.info()
    assert (info.state, info.ladder, info.engine) == (ModelState.IDLE, (1, 8, 32), "reference")


def test_loading_makes_it_ready_and_happens_once(serve):
    served = serve(catalogue.affine())
    engine = served.load()
    assert served.load() is engine
    assert engine.loaded
    assert served.info().state is ModelState.READY
    served.pools.close()
    assert not engine.loaded


def test_a_failed_load_is_published_with_its_reason(broken, clock):
    served, _, _ = broken
    with pytest.raises(ModelLoadFailed, match="no memory"):
        served.load()
    info = served.info()
    assert (info.state, info.reason) == (ModelState.FAILED, "model 'net': no memory")


def test_a_failed_load_is_not_tried_again_before_it_has_cooled_down(broken, clock):
    served, attempts, _ = broken
    for _ in range(3):
        with pytest.raises(ModelLoadFailed):
            served.load()
    assert len(attempts) == 1
    clock.now += 2
    with pytest.raises(ModelLoadFailed, match=r"no memory \(tried again in 3 s\)"):
        served.load()
    clock.now += FIRST_COOLDOWN_S
    with pytest.raises(ModelLoadFailed):
        served.load()
    assert len(attempts) == 2


def test_the_cool_down_doubles_up_to_its_bound(broken, clock):
    served, attempts, _ = broken
    pauses = []
    for attempt in range(1, 10):
        with pytest.raises(ModelLoadFailed):
            served.load()
        assert len(attempts) == attempt
        pauses.append(served.pools["net"].snapshot("net").retry_in_s)
        clock.now += pauses[-1]
    assert pauses[:3] == [FIRST_COOLDOWN_S, 2 * FIRST_COOLDOWN_S, 4 * FIRST_COOLDOWN_S]
    assert pauses[-1] == LAST_COOLDOWN_S


def test_a_success_forgets_the_failures(broken, clock):
    served, _, mend = broken
    with pytest.raises(ModelLoadFailed):
        served.load()
    mend()
    clock.now += FIRST_COOLDOWN_S
    assert served.load().loaded
    assert (served.info().state, served.info().reason) == (ModelState.READY, "")


def test_a_model_that_cannot_be_described_fails_its_jobs_and_is_looked_at_again(serve, clock, tmp_path):
    served = serve(catalogue.affine())
    good = served.entry.source.read_bytes()
    served.entry.source.write_bytes(b"no model")
    with pytest.raises(ModelLoadFailed, match="is not an ONNX model"):
        _ = served.intake
    with pytest.raises(ModelLoadFailed, match="tried again in 5 s"):
        _ = served.intake
    assert served.info().state is ModelState.FAILED
    served.entry.source.write_bytes(good)
    clock.now += FIRST_COOLDOWN_S
    assert served.intake.signature is not None


def test_rows_are_staged_by_their_shape(serve):
    served = serve(catalogue.affine(), REFERENCE + PROFILE)
    wide, narrow = (accepted(served, width) for width in (32, 8))
    served.stage_for(wide).add(wide)
    served.stage_for(narrow).add(narrow)
    assert served.stage_for(accepted(served, 8)) is served.stage_for(narrow)
    assert len(served.stages) == 2
    assert served.staged_rows == 4
    assert list(served.waiting()) == [wide, narrow]


def test_a_shape_that_no_profile_admits_is_refused(serve):
    served = serve(catalogue.affine(), REFERENCE + PROFILE)
    with pytest.raises(ShapeRefused, match="outside all profiles"):
        served.stage_for(accepted(served, 64))
    assert not served.stages


def test_ever_new_shapes_do_not_add_up(serve):
    served = serve(catalogue.affine())
    kept = accepted(served, 500)
    served.stage_for(kept).add(kept)
    for width in range(1, 200):
        served.stage_for(accepted(served, width))
        served.forget_empty_stages()
    assert len(served.stages) <= 65
    assert list(served.waiting()) == [kept]


def test_rows_of_lengths_in_one_bucket_share_a_stage(serve):
    served = serve(catalogue.affine(), REFERENCE + PROFILE + "[buckets]\nW = [16, 32]\n")
    assert served.stage_for(accepted(served, 3)) is served.stage_for(accepted(served, 16))
    assert served.stage_for(accepted(served, 17)) is served.stage_for(accepted(served, 32))
    assert len(served.stages) == 2
    # Producers are told what they may send, which is any length.
    assert served.info().signature.inputs[0].shape == ("N", "W")


def test_buckets_that_do_not_fit_the_model_fail_it_with_the_reason(serve, clock):
    served = serve(catalogue.affine(), REFERENCE + PROFILE + "[buckets]\nW = [16, 64]\nV = [1]\n")
    with pytest.raises(
        ModelLoadFailed, match=r"'net': model.toml: buckets.W: lengths \[64\] are outside"
    ) as e:
        _ = served.intake
    assert "buckets.V: no such free axis" in str(e.value)
    assert served.info().state is ModelState.FAILED
    with pytest.raises(ModelLoadFailed, match="tried again in 5 s"):
        served.load()


def test_a_name_that_the_repository_lacks_is_refused(tmp_path):
    catalogue.write_repository(tmp_path, {"net": (catalogue.affine(), None)})
    with pytest.raises(RepositoryError, match="no model 'nett'; did you mean 'net'"):
        open_models(Repository(tmp_path), ["nett"], EngineOptions(), Pools())


def accepted(served, width):
    return served.intake.accept(claimed({"x": np.zeros((2, width), np.float32)}))
