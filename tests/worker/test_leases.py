from dataclasses import replace

from fixtures.jobs import claimed, empty_run
from tensorq_worker.leases import Leases


def test_holds_jobs_in_the_order_they_were_claimed():
    leases, jobs = Leases(), [claimed() for _ in range(3)]
    leases.add(jobs)
    assert leases.all() == jobs
    assert len(leases) == 3
    leases.end(jobs[1:2])
    assert leases.all() == [jobs[0], jobs[2]]
    assert leases.get(jobs[1].job_id) is None


def test_a_run_ends_with_its_lease():
    leases, run = Leases(), empty_run(1)
    leases.add([run.job])
    leases.attach(run)
    assert leases.run(run.job.job_id) is run
    leases.end([run.job])
    assert leases.run(run.job.job_id) is None
    assert not run.dropped


def test_the_end_of_an_old_lease_leaves_the_new_one():
    leases, old = Leases(), claimed()
    new = replace(old, token="t2")
    leases.add([new])
    leases.end([old])
    assert leases.get(old.job_id) is new
    leases.drop([old])
    assert leases.get(old.job_id) is new


def test_rows_of_a_lost_lease_are_dropped():
    leases, run = Leases(), empty_run(1)
    leases.add([run.job])
    leases.attach(run)
    leases.drop([run.job])
    assert run.dropped
    assert not leases


def test_a_job_leased_anew_drops_the_rows_of_the_old_lease():
    leases, run = Leases(), empty_run(1)
    leases.add([run.job])
    leases.attach(run)
    leases.add([replace(run.job, token="t2")])
    assert run.dropped
    assert leases.run(run.job.job_id) is None
    assert leases.run_of(run.job) is None


def test_a_run_is_found_by_its_very_lease():
    leases, run = Leases(), empty_run(1)
    leases.add([run.job])
    leases.attach(run)
    assert leases.run_of(run.job) is run
    assert leases.run_of(replace(run.job, token="t2")) is None
