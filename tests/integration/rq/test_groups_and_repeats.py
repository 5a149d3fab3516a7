"""RQ's groups and repeats, which the client has no words for: their fields in a job's hash are honoured."""

from __future__ import annotations

import numpy as np
import pytest
from redis import Redis
from rq.group import Group
from rq.job import Job, JobStatus
from rq.results import Result

from fixtures.rqstate import leftovers
from fixtures.servers import on_redis_and_valkey
from fixtures.workers import Workers, wait_until
from tensorq import Client

pytestmark = pytest.mark.integration

X = {"x": np.ones((2, 3), np.float32)}


@on_redis_and_valkey
def test_a_group_follows_its_jobs(client: Client, redis: Redis, fleet: Workers) -> None:
    group = Group.create(redis, "night")
    jobs = [client.submit("affine", X), client.submit("affine", X, result_ttl=0)]
    reads = [Job.fetch(job.id, connection=redis) for job in jobs]
    with redis.pipeline() as pipe:
        for read in reads:
            read.group_id = group.name
            read.save(pipeline=pipe)
        group._add_jobs(reads, pipe)
        pipe.execute()
    assert {job.id for job in group.get_jobs()} == {job.id for job in jobs}
    fleet.launch("affine", "--burst").wait()
    assert [job.id for job in Group.fetch(group.name, redis).get_jobs()] == [jobs[0].id]
    assert leftovers(redis) == {}


@pytest.mark.parametrize("interval_s", [0, 1])
def test_a_repeated_job_runs_again_with_its_input(
    client: Client, redis: Redis, fleet: Workers, interval_s: int
) -> None:
    job = client.submit("affine", X)
    read = Job.fetch(job.id, connection=redis)
    read.repeats_left, read.repeat_intervals = 2, [interval_s]
    read.save()
    fleet.start("affine", "--with-scheduler")
    wait_until(lambda: read.get_status() is JobStatus.FINISHED, what="the last run")
    assert [result.type for result in read.results()] == [Result.Type.SUCCESSFUL] * 3
    assert job.result(timeout=5)["y"].tolist() == [[3] * 3] * 2
    assert leftovers(redis) == {}
