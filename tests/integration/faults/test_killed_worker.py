"""kill -9 at any step of claim, run and finish: another worker finishes every job, once, and charges none."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from redis import Redis
from rq import Retry, SimpleWorker
from rq.registry import StartedJobRegistry

from fixtures.affine import assert_all_right, submit, suspects
from fixtures.faulty import launch_faulty
from fixtures.leased import field
from fixtures.redis import RedisServer
from fixtures.workers import RQ, environment, workers
from models import catalogue
from tensorq import Client, keys
from tensorq.names import model_queues

# Point -> least and most suspects there: a lane holds two tiles of 8 rows at most.
POINTS = {
    "after-claim": (0, 0),
    "before-mark": (0, 0),
    "after-mark": (8, 8),
    "in-tile": (8, 16),
    "after-tile": (8, 16),
    "before-finish": (8, 16),
    "after-finish": (0, 16),
    "after-mark@3": (8, 16),
    "in-tile@3": (8, 16),
    "before-finish@3": (8, 16),
}


@contextmanager
def stock_tools(redis: Redis, url: str, queues: list[str]) -> Iterator[None]:
    """Stock RQ's cleaning, again and again: what ``rq info``, dashboards and other people's workers do."""
    stop = threading.Event()

    def clean() -> None:
        worker = SimpleWorker(["another"], connection=redis)
        while not stop.wait(0.05):
            worker.clean_registries()
            for queue in queues:
                StartedJobRegistry(queue, connection=redis).cleanup()

    thread = threading.Thread(target=clean)
    thread.start()
    try:
        yield
        subprocess.run([*RQ, "info", "--url", url], env=environment(), check=True, capture_output=True)
    finally:
        stop.set()
        thread.join()


def test_all_jobs_are_finished_once_by_another_worker(
    redis: Redis, redis_server: RedisServer, client: Client, tmp_path: Path
) -> None:
    # One size: on a busy machine tiles of 4 may seem the cheaper ones.
    toml = "[[profile]]\nx = { min = [8, 4], opt = [8, 4], max = [8, 4] }\n"
    models = {point: point.replace("@", "-") for point in POINTS}
    repository = catalogue.write_repository(
        tmp_path / "models", {model: (catalogue.affine(), toml) for model in models.values()}
    )
    jobs = {point: submit(client, 60, (1,), model, retry=Retry(max=2)) for point, model in models.items()}
    queues = [queue for model in models.values() for queue in model_queues(model)]
    with workers(redis_server.url, repository, tmp_path) as made, stock_tools(redis, made.url, queues):
        killed = {
            point: launch_faulty(made, model, "--name", model, kill_at=point)
            for point, model in models.items()
        }
        for point, worker in killed.items():
            assert worker.wait(30) == -9, point
        held = {point: leased_by(redis, model) for point, model in models.items()}
        second = launch_faulty(made)
        for point in models:
            assert_all_right(client, redis, jobs[point])
        assert second.stop() == 0
    for point, (least, most) in POINTS.items():
        marked = {jobs[point][n].id for n in suspects(redis, jobs[point])}
        assert least <= len(marked) <= most, point
        assert marked <= held[point], point
        assert {field(redis, job.id, "retries_left") for job in jobs[point]} == {"2"}


def leased_by(redis: Redis, model: str) -> set[str]:
    """Ids of jobs of a model under a lease."""
    return {member.decode().partition(":")[0] for member in redis.zrange(keys.wip(model), 0, -1)}
