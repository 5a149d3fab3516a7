"""A job that its worker lost and leased again: what is left of the first lease does not touch the second."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from redis import Redis

from fixtures.leased import claim, store
from tensorq_worker.broker import Broker, Claimed
from tensorq_worker.leases import Leases
from tensorq_worker.tiles import Run


def leases_of_a_job_leased_twice(redis: Redis, broker: Broker) -> tuple[Leases, Run, Run]:
    store(redis, ["job"])
    (first,) = claim(broker)
    leases, old, new = Leases(), run(first), run(replace(first, token="another"))
    for lease in (old, new):
        leases.add([lease.job])
        leases.attach(lease)
    return leases, old, new


def run(job: Claimed, rows: int = 1) -> Run:
    return Run(job, {"x": np.zeros((rows, 1))}, rows, ((1,),))


def test_leasing_anew_drops_the_rows_of_before(redis: Redis, broker: Broker) -> None:
    _, old, new = leases_of_a_job_leased_twice(redis, broker)
    assert (old.dropped, new.dropped) == (True, False)


def test_a_beat_that_lost_the_first_lease_leaves_the_second(redis: Redis, broker: Broker) -> None:
    leases, old, new = leases_of_a_job_leased_twice(redis, broker)
    leases.drop([old.job])
    assert not new.dropped
    assert leases.all() == [new.job]


def test_the_end_of_the_first_lease_leaves_the_second(redis: Redis, broker: Broker) -> None:
    leases, old, new = leases_of_a_job_leased_twice(redis, broker)
    assert leases.run_of(old.job) is None
    assert leases.run_of(new.job) is new
    leases.end([old.job])
    assert leases.all() == [new.job]


def test_rows_that_are_brought_twice_count_once(redis: Redis, broker: Broker) -> None:
    # A tile that fails after some of its jobs were collected is split and runs again.
    store(redis, ["job"])
    (job,) = claim(broker)
    split = run(job, rows=3)
    first = {"y": np.ones((2, 1))}
    assert split.collect(0, 2, first, ["y"]) is None
    assert split.collect(0, 2, first, ["y"]) is None
    whole = split.collect(2, 3, {"y": np.full((1, 1), 2.0)}, ["y"])
    assert whole is not None
    assert whole["y"].ravel().tolist() == [1, 1, 2]
