"""The first job after a worker says ready against the next hundred, back to back, one at a time.

    python ops/bench/warm.py [--starts 7] [--repository DIR --model NAME] [--json FILE]

Each start is a fresh worker process. Until it is ready the client keeps jobs going through another worker, so
that client, Redis and the machine are as warm for the first job as for the next: what is left is the worker's
being new. Fails where the median over the starts of first / median of the next hundred exceeds 1.2.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import numpy as np
from redis import Redis

sys.path.insert(0, str(Path(__file__).parents[2]))

from ops.bench import model, processes

from tensorq import Client, ModelState, Signature, keys
from tensorq.embedded import EmbeddedRedis

LIMIT = 1.2
NEXT = 100
PAUSES, PAUSE_S = 3, 1.0
READY_S = 120.0


def main() -> int:
    options = _parse()
    processes.end_on_sigterm()
    with tempfile.TemporaryDirectory(prefix="tensorq-bench-") as scratch:
        own = model.write_repository(Path(scratch, "models"))
        for name in (model.BATCHED, model.SINGLE):
            # Waiting for company is another matter: the first few jobs wait longer, as no rate is known yet.
            with (own / name / "model.toml").open("a") as settings:
                settings.write("[batching]\nmax_delay_ms = 0\n")
        repository, name = options.repository or own, options.model or model.BATCHED
        found = run(own, repository, name, options.starts, Path(scratch))
    print(f"{'ready s':>9}{'first ms':>10}{'next ms':>10}{'first / next':>14}{'paused / next':>15}")
    for one in found:
        print(
            f"{one['ready_s']:>9.2f}{one['first_ms']:>10.2f}{one['next_ms']:>10.2f}{one['ratio']:>14.2f}"
            f"{one['paused_ratio']:>15.2f}"
        )
    ratio = median(one["ratio"] for one in found)
    paused = median(one["paused_ratio"] for one in found)
    print(
        f"first / next: median {ratio:.2f}, at most {LIMIT} wanted; after a pause of a second: {paused:.2f}"
    )
    if options.json is not None:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps({"model": name, "ratio": ratio, "starts": found}, indent=1) + "\n")
    return int(ratio > LIMIT)


def run(own: Path, repository: Path, name: str, starts: int, logs: Path) -> list[dict[str, float]]:
    """Starts one worker after another, beside one that keeps the client busy."""
    with (
        EmbeddedRedis() as server,
        Client(server.url) as client,
        processes.worker(_command(model.SINGLE, own, server.url), {}, logs / "other.log") as other,
    ):
        _wait_ready(client, model.SINGLE, other, busy=False)
        command = _command(name, repository, server.url)
        return [start(client, server.url, name, command, logs / "worker.log") for _ in range(starts)]


def _command(name: str, repository: Path, url: str) -> list[str]:
    return ["-m", "tensorq_worker.cli", "worker", name, "--models", str(repository), "--redis", url]


def start(client: Client, url: str, name: str, command: Sequence[str], log: Path) -> dict[str, float]:
    """Starts a worker and times its first jobs."""
    began = time.perf_counter()
    with processes.worker(command, {}, log) as running:
        tile = _tensors(_wait_ready(client, name, running, busy=True))
        ready_s = time.perf_counter() - began
        taken_ms = []
        for _ in range(NEXT + 1):
            sent = time.perf_counter()
            client.submit(name, tile).result(60)
            taken_ms.append(1000 * (time.perf_counter() - sent))
        paused_ms = [_after_pause(client, name, tile) for _ in range(PAUSES)]
        running.stop()
    with Redis.from_url(url) as redis:
        redis.delete(keys.model(name))
    next_ms = median(taken_ms[1:])
    return {
        "ready_s": ready_s,
        "first_ms": taken_ms[0],
        "next_ms": next_ms,
        "ratio": taken_ms[0] / next_ms,
        "paused_ratio": median(paused_ms) / next_ms,
    }


def _after_pause(client: Client, name: str, tile: dict[str, np.ndarray]) -> float:
    """A job after a second of nothing: what of a first job's time is not the worker's being new."""
    time.sleep(PAUSE_S)
    sent = time.perf_counter()
    client.submit(name, tile).result(60)
    return 1000 * (time.perf_counter() - sent)


def _wait_ready(client: Client, name: str, running: processes.Worker, *, busy: bool) -> Signature:
    other = {"x": np.zeros((1, model.IN), np.float32)}
    give_up = time.monotonic() + READY_S
    while time.monotonic() < give_up:
        running.expect_alive()
        for info in client.models():
            if info.name == name and info.state is ModelState.READY and info.signature is not None:
                return info.signature
        if busy:
            client.submit(model.SINGLE, other).result(60)
        else:
            time.sleep(0.01)
    raise SystemExit(f"{name} was not ready within {READY_S:.0f} s")


def _tensors(signature: Signature) -> dict[str, np.ndarray]:
    """One row of noise; free axes get 320."""
    rng = np.random.default_rng(1)
    found = {}
    for spec in signature.inputs:
        shape = [1, *(axis if isinstance(axis, int) else 320 for axis in spec.shape[1:])]
        found[spec.name] = rng.uniform(0, 1, shape).astype(spec.dtype)
    return found


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--starts", type=int, default=7)
    parser.add_argument("--repository", type=Path)
    parser.add_argument("--model")
    parser.add_argument("--json", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
