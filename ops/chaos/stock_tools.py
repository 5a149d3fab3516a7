"""What stock RQ does beside the workers: ``python ops/chaos/stock_tools.py URL QUEUE...`` until it is killed.

A stock worker's maintenance over the models' queues, all the time, and ``rq info`` every few seconds. It
counts in Redis how often it has done which, so that a run can tell that it took place.
"""

from __future__ import annotations

import subprocess
import sys
import time

from redis import Redis
from redis.exceptions import RedisError
from rq import SimpleWorker
from rq.registry import clean_registries

MAINTENANCE, INFO = "chaos:maintenance", "chaos:rq-info"
EVERY_S, INFO_EVERY_S = 0.1, 4.0


def tend(redis: Redis, queues: list[str]) -> None:
    """One round of what a worker of these queues does every ten minutes."""
    worker = SimpleWorker(queues, connection=redis)
    worker.run_maintenance_tasks()
    # The lock that the tasks take lives for minutes, and a crash of Redis leaves it behind.
    for queue in worker.queues:
        clean_registries(queue)
    redis.incr(MAINTENANCE)


def main() -> None:
    url, *queues = sys.argv[1:]
    info_at = time.monotonic()
    while True:
        try:
            with Redis.from_url(url) as redis:
                tend(redis, queues)
                if time.monotonic() >= info_at:
                    info_at = time.monotonic() + INFO_EVERY_S
                    command = [sys.executable, "-m", "rq.cli", "info", "--url", url]
                    if subprocess.run(command, capture_output=True, check=False).returncode == 0:
                        redis.incr(INFO)
        except RedisError:
            time.sleep(0.2)
        time.sleep(EVERY_S)


if __name__ == "__main__":
    main()
