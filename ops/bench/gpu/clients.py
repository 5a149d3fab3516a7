"""Client processes that keep a model's queue filled and count what comes back."""

from __future__ import annotations

import time
from collections import deque
from dataclasses import asdict, dataclass
from multiprocessing.queues import Queue
from typing import Any

import numpy as np

import tensorq

# Lengths of free axes besides the batch; a worker publishes none.
FREE = {"rec": 320, "det": 736}
SLICE_BYTES = 8 * 1024 * 1024


@dataclass(slots=True)
class Counts:
    """What one client saw between the two times that it was given.

    Attributes:
        jobs: results that arrived.
        rows: their rows.
        in_bytes: inputs of these.
        out_bytes: outputs of these.
        cpu_s: this process's own.
        waited_s: with nothing to do but to wait for results.
    """

    jobs: int = 0
    rows: int = 0
    in_bytes: int = 0
    out_bytes: int = 0
    cpu_s: float = 0.0
    waited_s: float = 0.0


def pump(url: str, model: str, rows: int, window: int, begin: float, end: float, found: Queue[Any]) -> None:
    """Submits jobs of ``rows`` rows, at most ``window`` rows of them unanswered, and puts its `Counts`.

    Args:
        url: Redis.
        model: the model.
        rows: of each job.
        window: rows on their way.
        begin: `time.time` when counting begins; before it the worker warms up.
        end: `time.time` when it ends.
        found: gets the counts as a dict, or the words of an error.
    """
    try:
        found.put(_pump(url, model, rows, window, begin, end))
    except Exception as exc:
        found.put(f"{type(exc).__name__}: {exc}")


def _pump(url: str, model: str, rows: int, window: int, begin: float, end: float) -> dict[str, Any]:
    counts, cpu = Counts(), time.process_time()
    with tensorq.Client(url) as client:
        tensors = inputs(client, model, rows)
        size = sum(array.nbytes for array in tensors.values())
        many = max(1, min(window // rows // 2, SLICE_BYTES // size))
        flying: deque[list[tensorq.Job]] = deque()
        while (now := time.time()) < end:
            if now < begin:
                counts, cpu = Counts(), time.process_time()
            flying.append(client.submit_many(model, [tensors] * many))
            if len(flying) * many * rows < window:
                continue
            waiting = time.perf_counter()
            results = client.gather(flying.popleft(), timeout=30)
            counts.waited_s += time.perf_counter() - waiting
            counts.jobs += len(results)
            counts.rows += len(results) * rows
            counts.in_bytes += len(results) * size
            counts.out_bytes += sum(array.nbytes for result in results for array in result.values())
        counts.cpu_s = time.process_time() - cpu
        for jobs in flying:
            client.gather(jobs, timeout=30)
    return asdict(counts)


def inputs(client: tensorq.Client, model: str, rows: int) -> dict[str, np.ndarray]:
    """Random inputs of a job by what the worker publishes."""
    signature = next(info.signature for info in client.models() if info.name == model)
    assert signature is not None
    rng = np.random.default_rng(1)
    tensors = {}
    for spec in signature.inputs:
        free = [length if isinstance(length, int) else FREE.get(model, 1) for length in spec.shape[1:]]
        dtype = np.dtype(spec.dtype)
        shape = (rows, *free)
        tensors[spec.name] = (
            rng.uniform(-1, 1, shape).astype(dtype)
            if dtype.kind == "f"
            else rng.integers(0, 100, shape).astype(dtype)
        )
    return tensors
