"""What the client costs: CPU and wall time a job of submit_many + gather, against a fake finisher.

    python ops/bench/producer.py --jobs 20000 --bytes 512 [--profile]

A redis-server of its own runs on a unix socket; another process ends the jobs by a Lua script, as fast as
it can, with a result as large as the input. Python's own time of the client is what is reported: on a
machine with few cores the wall time is shared with Redis and the finisher.
"""

from __future__ import annotations

import argparse
import cProfile
import multiprocessing
import pstats
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
from redis import ConnectionError, Redis

import tensorq
from tensorq import keys, models

MODEL = "bench"
FINISH = """
local ids = redis.call('LPOP', KEYS[1], ARGV[1])
if not ids then return 0 end
local client = redis.call('HGET', ARGV[2] .. ids[1], 'tensorq_client')
for _, id in ipairs(ids) do
  local input = redis.call('GETDEL', ARGV[3] .. id)
  redis.call('HSET', ARGV[2] .. id, 'status', 'finished')
  redis.call('EXPIRE', ARGV[2] .. id, 500)
  redis.call('SET', ARGV[4] .. id, input, 'EX', 500)
end
redis.call('RPUSH', ARGV[5] .. client, unpack(ids))
return #ids
"""


def finish_all(url: str, batch: int) -> None:
    redis = Redis.from_url(url)
    script = redis.register_script(FINISH)
    while True:
        args: list[str | int] = [batch, keys.JOB, keys.INPUT, keys.RESULT, keys.DONE]
        if not script(keys=[keys.queue(MODEL)], args=args):
            time.sleep(0.001)


def measure(url: str, jobs: int, size_bytes: int, profile: bool) -> None:
    arrays = [np.full((1, size_bytes // 4), n, np.float32) for n in range(jobs)]
    with tensorq.Client(url) as client:
        client.submit("bench-warm", {"x": arrays[0]}).cancel()
        profiler = cProfile.Profile()
        if profile:
            profiler.enable()
        cpu, wall = time.process_time(), time.perf_counter()
        handles = client.submit_many(MODEL, ({"x": array} for array in arrays))
        submit_cpu, submit_wall = time.process_time() - cpu, time.perf_counter() - wall
        results = client.gather(handles, timeout=120)
        all_cpu, all_wall = time.process_time() - cpu, time.perf_counter() - wall
        profiler.disable()
    if any(result["x"][0, 0] != n for n, result in enumerate(results)):
        raise SystemExit("a job has another job's result")
    us = 1e6 / jobs
    print(f"{jobs} jobs of {size_bytes} B, client CPU and wall time in us a job:")
    print(f"  submit_many  {submit_cpu * us:6.1f}  {submit_wall * us:6.1f}")
    print(f"  gather       {(all_cpu - submit_cpu) * us:6.1f}  {(all_wall - submit_wall) * us:6.1f}")
    print(f"  both         {all_cpu * us:6.1f}  {all_wall * us:6.1f}")
    if profile:
        pstats.Stats(profiler).sort_stats("tottime").print_stats(25)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=20_000)
    parser.add_argument("--bytes", type=int, default=512)
    parser.add_argument("--batch", type=int, default=256, help="jobs that the finisher ends in one step")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        socket = Path(folder, "redis.sock")
        url = f"unix://{socket}"
        command = ["redis-server", "--port", "0", "--unixsocket", str(socket), "--save", "", "--dir", folder]
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        try:
            redis = Redis.from_url(url)
            while True:
                try:
                    redis.ping()
                    break
                except ConnectionError:
                    time.sleep(0.02)
            spec = tensorq.TensorSpec("x", "float32", ("n", options.bytes // 4))
            signature = tensorq.Signature((spec,), ())
            models.publish(redis, tensorq.ModelInfo(MODEL, signature), ttl_s=600)
            models.publish(redis, tensorq.ModelInfo("bench-warm", signature), ttl_s=600)
            finisher = multiprocessing.get_context("spawn").Process(
                target=finish_all, args=(url, options.batch), daemon=True
            )
            finisher.start()
            for _ in range(options.runs):
                measure(url, options.jobs, options.bytes, options.profile)
            finisher.kill()
        finally:
            server.kill()
            server.wait()


if __name__ == "__main__":
    main()
