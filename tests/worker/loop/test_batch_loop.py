import numpy as np
import pytest
from redis.exceptions import ConnectionError as RedisConnectionError

from fixtures.rig import NOW, REFERENCE
from models import catalogue
from tensorq.errors import InputError, WireError
from tensorq_worker.errors import DeadlineExceeded, FunctionRefused, NotFinite, PoisonJob

PATIENT = REFERENCE + "[batching]\nmax_delay_ms = 60000\n"


def x(number=0.0, rows=1):
    return {"x": np.full((rows, 2), number, np.float32)}


@pytest.fixture
def affine(rig):
    return rig(affine=(catalogue.affine(), NOW))


def test_jobs_are_finished_with_their_results(affine):
    jobs = [affine.submit("affine", x(n, rows=1 + n % 5)) for n in range(50)]
    affine.drain()
    for n, job in enumerate(jobs):
        np.testing.assert_array_equal(affine.outputs(job)["y"], np.full((1 + n % 5, 2), 2 * n + 1))
    assert not affine.leases
    assert not affine.loop.busy


def test_claims_stop_where_there_is_no_room(affine):
    affine.hold("affine")
    for _ in range(500):
        affine.submit("affine", x())
    for _ in range(20):
        affine.step()
    claims = len(affine.broker.wants)
    # Two slots of the largest tile, and two tiles' worth of rows staged.
    assert len(affine.leases) == 4 * 32
    for _ in range(20):
        affine.step()
    assert len(affine.broker.wants) == claims
    affine.let_go()
    affine.drain()
    assert len(affine.broker.results) == 500


def test_one_job_that_exceeds_the_room_is_claimed_all_the_same(affine):
    job = affine.submit("affine", x(1, rows=1000))
    affine.drain()
    assert len(affine.outputs(job)["y"]) == 1000


def test_no_more_jobs_than_asked_for_are_claimed_over_all_models(rig):
    two = rig({"max_jobs": 5}, a=(catalogue.affine(), NOW), b=(catalogue.affine(), NOW))
    for n in range(10):
        two.submit("a" if n < 3 else "b", x())
    for _ in range(10):
        two.step()
    assert two.loop.claimed_jobs == 5
    assert two.loop.exhausted
    assert sum(len(queue) for queue in two.broker.queues.values()) == 5


def test_an_idle_model_does_not_use_up_the_jobs_asked_for(rig):
    two = rig({"max_jobs": 5}, idle=(catalogue.affine(), NOW), busy=(catalogue.affine(), NOW))
    for _ in range(5):
        two.submit("busy", x())
    two.step()
    assert two.loop.claimed_jobs == 5


def test_nothing_is_claimed_while_not_claiming(affine):
    affine.submit("affine", x())
    affine.step(claiming=False)
    assert affine.broker.wants == []


def test_a_claim_whose_reply_was_lost_is_repeated_even_then(affine):
    affine.broker.claim_pending = True
    assert affine.loop.busy
    affine.step(claiming=False)
    assert affine.broker.wants == [[]]


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"payload": b"junk"}, WireError),
        ({"payload": None}, WireError),
        ({"model": "other"}, InputError),
        ({"crashes": 3}, PoisonJob),
        ({"deadline_ms": 1}, DeadlineExceeded),
        ({"model": ""}, FunctionRefused),
    ],
)
def test_a_bad_job_fails_alone(affine, fields, error):
    before, bad, after = (affine.submit("affine", x(n), **(fields if n == 1 else {})) for n in range(3))
    affine.drain()
    assert list(affine.slow.failed) == [bad.job_id]
    assert isinstance(affine.slow.failed[bad.job_id], error)
    assert set(affine.broker.results) == {before.job_id, after.job_id}


def test_a_job_whose_queue_names_no_model_of_ours_fails_alone(affine):
    bad = affine.submit("affine", x(), queue="stranger")
    good = affine.submit("affine", x())
    affine.drain()
    assert list(affine.slow.failed) == [bad.job_id]
    assert list(affine.broker.results) == [good.job_id]


def test_function_jobs_run_where_they_are_allowed(rig):
    allowing = rig({"allow_functions": True}, affine=(catalogue.affine(), NOW))
    job = allowing.submit("affine", x(), model="")
    allowing.drain()
    assert allowing.slow.called == [job.job_id]


def test_an_unusual_job_is_ended_by_rqs_handlers_with_arrays_of_its_own(affine):
    job = affine.submit("affine", x(3), unusual=True)
    other = affine.submit("affine", x(4))
    affine.drain()
    outputs = affine.slow.succeeded[job.job_id]["y"]
    np.testing.assert_array_equal(outputs, [[7, 7]])
    assert outputs.base is None
    assert list(affine.broker.results) == [other.job_id]


def test_a_staged_job_is_stopped_without_being_run(rig):
    patient = rig(affine=(catalogue.affine(), PATIENT))
    job, other = patient.submit("affine", x()), patient.submit("affine", x())
    patient.step()
    patient.stop.job(job.job_id)
    patient.step()
    assert patient.slow.stopped == [job.job_id]
    patient.drain(claiming=False)
    assert patient.broker.launches == [[other.job_id]]


def test_a_running_job_is_stopped_when_its_tile_ends(affine):
    affine.hold("affine")
    job, other = affine.submit("affine", x()), affine.submit("affine", x())
    affine.step()
    affine.stop.job(job.job_id)
    affine.step()
    assert affine.slow.stopped == []
    affine.let_go()
    affine.drain()
    assert affine.slow.stopped == [job.job_id]
    assert list(affine.broker.results) == [other.job_id]


def test_a_stop_of_a_job_that_is_not_here_is_ignored(affine):
    affine.stop.job("elsewhere")
    affine.step()
    assert affine.slow.stopped == []


def test_a_tile_over_the_timeout_fails_the_jobs_that_have_it(affine):
    affine.hold("affine")
    hasty, patient = affine.submit("affine", x(), timeout_s=1), affine.submit("affine", x(), timeout_s=60)
    affine.step()
    affine.stop.wake.wait(1.1)
    affine.let_go()
    affine.drain()
    assert isinstance(affine.slow.failed[hasty.job_id], DeadlineExceeded)
    assert "the job's timeout is 1 s" in str(affine.slow.failed[hasty.job_id])
    assert list(affine.broker.results) == [patient.job_id]


def test_an_act_that_redis_interrupts_is_done_again(affine):
    bad = affine.submit("affine", x(), payload=b"junk")
    affine.slow.errors.append(RedisConnectionError("gone"))
    affine.step()
    with pytest.raises(RedisConnectionError):
        affine.step()
    assert affine.loop.busy
    affine.drain()
    assert list(affine.slow.failed) == [bad.job_id]


def test_storing_results_is_tried_until_it_succeeds(affine):
    affine.broker.finish_errors.extend(RedisConnectionError("gone") for _ in range(2))
    job = affine.submit("affine", x(1))
    affine.drain()
    assert list(affine.broker.results) == [job.job_id]


def test_a_result_that_no_payload_can_hold_fails_its_job_alone(rig, monkeypatch):
    gather = rig(gather=(catalogue.gather(), NOW))
    large, small = (gather.submit("gather", {"index": np.zeros(rows, np.int64)}) for rows in (101, 1))
    # 8 bytes a row come in, 16 go out.
    monkeypatch.setattr("tensorq.wire.MAX_PAYLOAD_BYTES", 1200)
    gather.drain()
    error = gather.slow.failed[large.job_id]
    assert isinstance(error, WireError)
    assert "1616 bytes" in str(error) or "exceeds 1200 bytes" in str(error)
    assert list(gather.broker.results) == [small.job_id]


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_a_model_that_asks_for_finite_results_fails_the_others_alone(rig, number):
    affine = rig(affine=(catalogue.affine(), NOW + "[outputs]\nfinite = true\n"))
    odd, even = affine.submit("affine", x(number, rows=2)), affine.submit("affine", x(2))
    affine.drain()
    error = affine.slow.failed[odd.job_id]
    assert isinstance(error, NotFinite)
    assert "output 'y': 4 of 4 numbers are NaN or infinite" in str(error)
    assert list(affine.broker.results) == [even.job_id]


def test_not_a_number_is_a_result_like_any_other(affine):
    odd, even = affine.submit("affine", x(np.nan)), affine.submit("affine", x(2))
    affine.drain()
    assert np.isnan(affine.outputs(odd)["y"]).all()
    np.testing.assert_array_equal(affine.outputs(even)["y"], np.full((1, 2), 5))


def test_a_split_job_whose_tiles_answer_in_other_shapes_fails_alone(rig, monkeypatch):
    affine = rig(affine=(catalogue.affine(), NOW))

    def as_long_as_needed(inputs):
        most = int(inputs["x"].max())
        return {"y": np.repeat(inputs["x"][:, :1], most, axis=1)}

    monkeypatch.setattr(affine.models["affine"].engine, "execute", as_long_as_needed)
    rows = np.full((33, 2), 3, np.float32)
    rows[32] = 1
    large, small = affine.submit("affine", {"x": rows}), affine.submit("affine", x(1))
    affine.drain()
    assert "output 'y'" in str(affine.slow.failed[large.job_id])
    np.testing.assert_array_equal(affine.outputs(small)["y"], [[1]])


def test_any_tile_over_the_timeout_fails_a_split_job(affine):
    affine.hold("affine")
    hasty = affine.submit("affine", x(rows=33), timeout_s=1)
    affine.step()
    affine.stop.wake.wait(1.1)
    affine.let_go()
    affine.drain()
    assert "the job's timeout is 1 s" in str(affine.slow.failed[hasty.job_id])
    assert affine.broker.results == {}
