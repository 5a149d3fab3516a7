"""A model that cannot be loaded fails its own jobs only, and an engine that hangs ends its process."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from redis import Redis

from fixtures.affine import DEADLY, MODEL, assert_all_right, rows, submit
from fixtures.faulty import start_faulty
from fixtures.redis import RedisServer
from fixtures.workers import Workers, wait_until
from fixtures.workers import workers as open_workers
from models import catalogue
from tensorq import Client, JobFailed
from tensorq.status import Status


@pytest.mark.parametrize("damage", ["corrupt", "truncated", "removed before it was loaded"])
def test_a_broken_model_fails_its_jobs_and_recovers_once_it_is_mended(
    redis: Redis, redis_server: RedisServer, client: Client, tmp_path: Path, damage: str
) -> None:
    models = {MODEL: (catalogue.affine(), None), "broken": (catalogue.affine(), None)}
    repository = catalogue.write_repository(tmp_path / "models", models)
    file = repository / "broken" / "model.onnx"
    whole = file.read_bytes()
    with open_workers(redis_server.url, repository, tmp_path) as made:
        if damage == "corrupt":
            file.write_bytes(b"\xff" * 100)
        elif damage == "truncated":
            file.write_bytes(whole[: len(whole) // 2])
        worker = start_faulty(made, "--load", "lru", cooldown_s="1")
        if damage.startswith("removed"):
            file.unlink()
        good, bad = submit(client, 20), submit(client, 20, model="broken")
        assert_all_right(client, redis, good)
        for job in bad:
            with pytest.raises(JobFailed, match="broken") as failed:
                client.result(job, 20)
            assert failed.value.kind == "ModelLoadFailed"
        file.write_bytes(whole)
        time.sleep(1.0)
        wait_until(lambda: recovered(client))
        assert_all_right(client, redis, submit(client, 20, model="broken"))
        assert worker.stop() == 0


def recovered(client: Client) -> bool:
    (job,) = submit(client, 1, model="broken")
    try:
        client.result(job, 10)
    except JobFailed:
        return False
    return True


def test_an_engine_call_that_never_returns_ends_the_process_and_its_jobs_come_back(
    redis: Redis, client: Client, workers: Workers
) -> None:
    worker = start_faulty(workers, hang_on=str(DEADLY), overdue_s="1")
    (hung,) = client.submit_many(MODEL, [{"x": rows(DEADLY)}], timeout=1)
    assert worker.wait() == 70
    assert "its engine does not answer" in worker.log
    start_faulty(workers)
    client.result(hung, 20)
    assert client.status(hung) is Status.FINISHED
