"""The demo: a server, a worker, two pages, a comparison."""

from __future__ import annotations

import logging
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from ops.demo import repository
from ops.demo.counters import Counters, worker_counters
from ops.demo.failure import DemoFailure
from ops.demo.ocr import Line, Reader
from ops.demo.picture import draw
from ops.demo.worker import Worker
from redis import Redis

from tensorq import Client
from tensorq.embedded import EmbeddedRedis


def run(copies: int, out: Path) -> int:
    """Reads each page ``copies`` times through the queue and once alone; returns the exit status."""
    logging.getLogger("RapidOCR").setLevel(logging.WARNING)
    pages = repository.pages()
    reader = Reader()
    alone = [reader.read(page) for page in pages]
    with tempfile.TemporaryDirectory(prefix="tensorq-demo-") as folder, EmbeddedRedis() as server:
        models = repository.make_repository(out / "models")
        print(f"redis: {server.binary}, pid {server.pid}, {server.url}")
        with (
            Client(server.url) as client,
            Redis.from_url(server.url) as redis,
            Worker(models, server.url, Path(folder) / "worker.log") as worker,
        ):
            worker.wait_ready(client, set(repository.FILES))
            engines = {info.name: info.engine for info in client.models()}
            print("worker: " + ", ".join(f"{name} on {engine}" for name, engine in engines.items()))
            before = worker_counters(redis, repository.FILES)
            started = time.perf_counter()
            queued = read_all(reader, client, worker.check, pages * copies)
            elapsed_s = time.perf_counter() - started
            counters = worker_counters(redis, repository.FILES)
            worker.stop()
    print_counters(counters, before, elapsed_s)
    for page, lines in zip(pages, queued, strict=False):
        draw(page, lines, out / page.name)
    return compare(pages, alone, queued, out)


def read_all(
    reader: Reader, client: Client, check: Callable[[], None], pages: list[Path]
) -> list[list[Line]]:
    """Reads pages through the queue, all at once, each in a thread of its own."""
    with ThreadPoolExecutor(len(pages)) as threads:
        return list(threads.map(lambda page: reader.queued(client, check).read(page), pages))


def print_counters(after: Counters, before: Counters, elapsed_s: float) -> None:
    jobs, rows = after.jobs - before.jobs, after.rows - before.rows
    tiles, padding = after.tiles - before.tiles, after.padding - before.padding
    if not jobs or not tiles:
        raise DemoFailure(f"the worker counted {jobs} jobs and {tiles} batches: the queue was not used")
    print(
        f"{jobs} jobs, {tiles} batches, {rows / tiles:.2f} rows a batch on average, "
        f"{padding} rows of padding, {jobs / elapsed_s:.1f} jobs/s ({elapsed_s:.2f} s)"
    )


def compare(pages: list[Path], alone: list[list[Line]], queued: list[list[Line]], out: Path) -> int:
    """Prints each page's text and returns 0 if every reading of it equals the one alone, else 1."""
    equal = True
    for index, (page, expected) in enumerate(zip(pages, alone, strict=True)):
        readings = queued[index :: len(pages)]
        print(f"\n{page.name}: picture in {out / page.name}")
        for line in readings[0]:
            print(f"  {line.score:.3f}  {line.text}")
        if not expected:
            raise DemoFailure(f"rapidocr alone found no text on {page.name}: nothing was compared")
        for reading in readings:
            if (got := [line.text for line in reading]) != (want := [line.text for line in expected]):
                equal = False
                print(f"  DIFFERS from rapidocr alone:\n    alone:  {want}\n    queued: {got}")
    print("\nall text is what rapidocr reads alone" if equal else "\nthe text differs")
    return 0 if equal else 1
