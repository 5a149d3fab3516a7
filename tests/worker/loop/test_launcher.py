import time

import numpy as np
import pytest
from redis.exceptions import ConnectionError as RedisConnectionError

from fixtures.rig import NOW, REFERENCE
from models import catalogue
from tensorq_engines import EngineFatal, TileFailed
from tensorq_worker.errors import DeadlineExceeded, WorkerFault
from tensorq_worker.planner import ArrivalRate

PATIENT = REFERENCE + "[batching]\nmax_delay_ms = 60000\n"
BAD = 99


def index(*numbers):
    return {"index": np.int64(numbers)}


def ids(*jobs):
    return [job.job_id for job in jobs]


@pytest.fixture
def gather(rig):
    """A model of a table of 5 rows: an index of 5 or more fails the whole tile."""
    return rig(gather=(catalogue.gather(), NOW))


def test_a_full_ladder_of_jobs_goes_in_whole_tiles(gather):
    jobs = [gather.submit("gather", index(n % 5)) for n in range(32)]
    gather.drain()
    assert gather.broker.launches == [ids(*jobs)]
    np.testing.assert_array_equal(gather.outputs(jobs[3])["y"], np.float32([[12, 13, 14, 15]]))


@pytest.mark.parametrize("poison", [0, 3, 7])
def test_bisection_isolates_the_poison_job_in_log2_steps_and_fails_only_that(gather, poison):
    jobs = [gather.submit("gather", index(BAD if n == poison else n % 5)) for n in range(8)]
    gather.drain()
    assert list(gather.slow.failed) == [jobs[poison].job_id]
    error = gather.slow.failed[jobs[poison].job_id]
    assert isinstance(error, TileFailed)
    assert set(gather.broker.results) == {job.job_id for job in jobs} - {jobs[poison].job_id}
    tries = [len(tile) for tile in gather.broker.launches if jobs[poison].job_id in tile]
    assert tries == [8, 4, 2, 1]
    assert len(gather.broker.launches) == 1 + 2 * 3
    for n, job in enumerate(jobs):
        if n != poison:
            np.testing.assert_array_equal(gather.outputs(job)["y"][0, 0], 4 * (n % 5))


def test_several_poison_jobs_each_stand_alone_at_the_end(gather):
    jobs = [gather.submit("gather", index(BAD if n in (1, 2, 6) else 0)) for n in range(8)]
    gather.drain()
    assert set(gather.slow.failed) == {jobs[n].job_id for n in (1, 2, 6)}
    assert len(gather.broker.results) == 5


def test_a_poison_job_of_more_rows_than_a_tile_fails_once(gather):
    big = gather.submit("gather", index(*[BAD] * 70))
    good = gather.submit("gather", index(1))
    gather.drain()
    assert list(gather.slow.failed) == [big.job_id]
    assert list(gather.broker.results) == [good.job_id]


def test_a_stopped_job_of_more_rows_than_a_tile_ends_with_the_tiles_that_run(gather):
    gather.hold("gather")
    big = gather.submit("gather", index(*[1] * 200))
    gather.step()
    assert gather.lanes.pending == 2
    gather.stop.job(big.job_id)
    gather.step()
    gather.let_go()
    gather.drain()
    other = gather.submit("gather", index(1))
    gather.drain()
    assert gather.slow.stopped == [big.job_id]
    assert list(gather.broker.results) == [other.job_id]
    assert [len(tile) for tile in gather.broker.launches] == [1] * 3


def test_a_job_of_more_rows_than_a_tile_survives_the_bisection_of_a_tile_that_it_shares(gather):
    big = gather.submit("gather", index(*[n % 5 for n in range(40)]))
    bad = gather.submit("gather", index(BAD))
    gather.drain()
    assert list(gather.slow.failed) == [bad.job_id]
    np.testing.assert_array_equal(gather.outputs(big)["y"][:, 0], [4 * (n % 5) for n in range(40)])


def test_a_job_left_of_a_failed_tile_runs_again_before_it_is_blamed(gather):
    gather.hold("gather")
    bad, good, *others = (gather.submit("gather", index(n)) for n in (BAD, 1, 2, 3))
    gather.step()
    gather.leases.drop([bad, *others])
    gather.let_go()
    gather.drain()
    assert gather.broker.launches == [ids(bad, good, *others), ids(good)]
    assert gather.slow.failed == {}
    assert list(gather.broker.results) == [good.job_id]


def test_a_suspect_runs_while_nothing_else_does(gather):
    gather.hold("gather")
    before = [gather.submit("gather", index(1)) for _ in range(8)]
    gather.step()
    suspect = gather.submit("gather", index(2), alone=True)
    after = [gather.submit("gather", index(3)) for _ in range(8)]
    for _ in range(3):
        gather.step()
    assert gather.broker.calls == [("launch", ids(*before))]
    gather.let_go()
    gather.drain()
    assert gather.broker.calls[1:] == [
        ("finish", ids(*before)),
        ("launch", ids(suspect)),
        ("finish", ids(suspect)),
        ("launch", ids(*after)),
        ("finish", ids(*after)),
    ]


def test_no_more_suspects_are_claimed_than_run_next(gather):
    gather.hold("gather")
    suspects = [gather.submit("gather", index(1), alone=True) for _ in range(10)]
    for _ in range(20):
        gather.step()
    # One runs, and as many wait as tiles are to be staged ahead.
    assert len(gather.leases) == 1 + 2
    gather.let_go()
    gather.drain()
    assert gather.broker.launches == [[job.job_id] for job in suspects]


def test_a_suspect_of_more_rows_than_a_tile_never_shares_one(gather):
    suspect = gather.submit("gather", index(*[1] * 70), alone=True)
    others = [gather.submit("gather", index(3)) for _ in range(3)]
    gather.drain()
    assert [tile for tile in gather.broker.launches if suspect.job_id in tile] == [ids(suspect)] * 3
    assert len(gather.outputs(suspect)["y"]) == 70
    assert len(gather.broker.results) == 1 + len(others)


def test_a_job_whose_deadline_passes_while_it_is_staged_is_not_run(rig):
    patient = rig(gather=(catalogue.gather(), REFERENCE + "[batching]\nmax_delay_ms = 150\n"))
    late = patient.submit("gather", index(1), deadline_ms=int(time.time() * 1000) + 50)
    other = patient.submit("gather", index(2))
    patient.drain()
    assert isinstance(patient.slow.failed[late.job_id], DeadlineExceeded)
    assert "ms before it could run" in str(patient.slow.failed[late.job_id])
    assert patient.broker.launches == [ids(other)]
    assert list(patient.broker.results) == ids(other)


def test_a_job_that_is_late_when_it_is_claimed_is_not_staged(gather):
    late = gather.submit("gather", index(1), deadline_ms=1)
    gather.drain()
    assert isinstance(gather.slow.failed[late.job_id], DeadlineExceeded)
    assert gather.broker.launches == []


def test_rows_wait_for_company_and_a_hurry_ends_that(rig):
    patient = rig(gather=(catalogue.gather(), PATIENT))
    job = patient.submit("gather", index(1))
    patient.step()
    assert patient.broker.launches == []
    assert patient.loop.until_next_ms() == 1000
    patient.step(claiming=False)
    assert patient.broker.launches == [ids(job)]


def test_tiles_are_of_the_sizes_that_cost_least_as_measured(gather):
    gather.models["gather"].costs.table.put(((),), {1: 1.0, 8: 2.0, 32: 9.0})
    for _ in range(32):
        gather.submit("gather", index(1))
    gather.drain()
    assert [len(tile) for tile in gather.broker.launches] == [8, 8, 8, 8]


def test_rows_do_not_wait_for_what_will_not_come(rig):
    slow = rig(gather=(catalogue.gather(), REFERENCE + "[batching]\nmax_delay_ms = 500\n"))
    slow.submit("gather", index(1))
    slow.step()
    assert slow.broker.launches == []
    (stage,) = slow.models["gather"].stages.values()
    stage.arrivals = ArrivalRate()
    for ago_ms in range(9000, 0, -1000):
        stage.arrivals.add(1, 1000 * time.monotonic() - ago_ms)
    slow.step()
    assert len(slow.broker.launches) == 1


def test_a_full_tile_does_not_wait(rig):
    patient = rig(gather=(catalogue.gather(), PATIENT))
    for _ in range(33):
        patient.submit("gather", index(1))
    patient.step()
    assert [len(tile) for tile in patient.broker.launches] == [32]


def test_a_producer_whose_clock_is_ahead_does_not_make_its_jobs_wait_longer(rig):
    soon = rig(gather=(catalogue.gather(), REFERENCE + "[batching]\nmax_delay_ms = 30\n"))
    started = time.monotonic()
    soon.submit("gather", index(1), at_ms=int(time.time() * 1000) + 3_600_000)
    soon.drain()
    assert time.monotonic() - started < 5


def test_a_redis_error_while_noting_the_suspects_loses_nothing(gather):
    jobs = [gather.submit("gather", index(n % 5)) for n in range(40)]
    gather.broker.launch_errors.extend(RedisConnectionError("gone") for _ in range(3))
    for _ in range(3):
        with pytest.raises(RedisConnectionError):
            gather.step()
        assert gather.lanes.pending == 0
    gather.drain()
    assert set(gather.broker.results) == {job.job_id for job in jobs}
    assert gather.slow.failed == {}


def test_rows_of_dropped_jobs_do_not_enlarge_the_tile(rig):
    patient = rig(gather=(catalogue.gather(), PATIENT))
    jobs = [patient.submit("gather", index(1)) for _ in range(20)]
    patient.step()
    patient.leases.drop(jobs[3:])
    patient.drain(claiming=False)
    assert patient.broker.launches == [ids(*jobs[:3])]
    assert patient.broker.paddings == [5]


def test_a_model_that_does_not_load_fails_its_jobs_alone(rig, monkeypatch):
    two = rig({"budget_bytes": 2**30}, good=(catalogue.affine(), NOW), bad=(catalogue.affine(), NOW))
    two.models["bad"].engine.source.unlink()
    x = {"x": np.zeros((1, 2), np.float32)}
    bad, good = two.submit("bad", x), two.submit("good", x)
    two.drain()
    assert "model 'bad': reference cannot load" in str(two.slow.failed[bad.job_id])
    assert list(two.broker.results) == [good.job_id]


def test_the_older_job_runs_first_whatever_its_model(rig):
    two = rig(a=(catalogue.affine(), NOW), b=(catalogue.affine(), NOW))
    x, now_ms = {"x": np.zeros((1, 2), np.float32)}, int(time.time() * 1000)
    young = two.submit("a", x, at_ms=now_ms - 10)
    old = two.submit("b", x, at_ms=now_ms - 1000)
    two.drain()
    assert two.broker.launches == [ids(old), ids(young)]


def test_rows_of_different_shapes_do_not_share_a_tile(rig):
    one = rig(affine=(catalogue.affine(), NOW))
    jobs = [one.submit("affine", {"x": np.full((1, 2 + n % 2), n, np.float32)}) for n in range(8)]
    one.drain()
    assert sorted(map(sorted, one.broker.launches)) == sorted(
        [sorted(ids(*jobs[::2])), sorted(ids(*jobs[1::2]))]
    )
    for n, job in enumerate(jobs):
        np.testing.assert_array_equal(one.outputs(job)["y"], np.full((1, 2 + n % 2), 2 * n + 1))


@pytest.mark.parametrize("method", ["acquire", "submit"])
def test_a_device_beyond_repair_ends_the_worker(gather, monkeypatch, method):
    job = gather.submit("gather", index(1))
    gather.step(claiming=False)
    lane = gather.lanes.free(gather.models["gather"].engine).lane

    def broken(*_):
        raise EngineFatal("device lost")

    monkeypatch.setattr(lane, method, broken)
    with pytest.raises(WorkerFault, match="device lost"):
        gather.step()
    assert gather.leases.get(job.job_id) is job
    assert gather.slow.failed == {}


def test_a_tile_that_ends_the_device_ends_the_worker(gather, monkeypatch):
    gather.submit("gather", index(1))

    def broken(inputs):
        raise EngineFatal("device lost")

    monkeypatch.setattr(gather.models["gather"].engine, "execute", broken)
    with pytest.raises(WorkerFault, match="device lost"):
        gather.drain()
    assert gather.slow.failed == {}
