"""``tensorq models list``."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Any

import click
from redis import Redis

from tensorq import keys
from tensorq.connection import binary_client, translated
from tensorq.models import ModelInfo, ModelResidency, published
from tensorq.names import model_queues
from tensorq.submission import Limits
from tensorq_worker.cli.command import Command
from tensorq_worker.cli.options import redis_option, required
from tensorq_worker.cli.text import describe, table
from tensorq_worker.errors import one_line

LEVELS = ("high", "normal", "low")
RESIDENCY = ("MIB", "USED", "TILES", "LOADS", "EVICTED", "LOAD MS")
HEADS = ("MODEL", "STATE", "ENGINE", "LADDER", *map(str.upper, LEVELS), *RESIDENCY, "LIMITS", "SIGNATURE")


@click.command("list", cls=Command)
@redis_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def list_models(ctx: click.Context, redis_url: str | None, as_json: bool) -> None:
    """List the models that workers serve now, and how many jobs wait for each."""
    with binary_client(required(redis_url)) as redis, translated(redis):
        infos = published(redis)
        queued = _queued(redis, infos)
    if as_json:
        click.echo(json.dumps([_plain(*pair) for pair in zip(infos, queued, strict=True)], indent=2))
    elif infos:
        click.echo(table(HEADS, [_row(*pair) for pair in zip(infos, queued, strict=True)]))
        for info in infos:
            if info.reason:
                click.echo(f"{info.name}: {one_line(info.reason)}")
    else:
        click.echo(f"{ctx.command_path}: no worker serves a model now", err=True)


def _queued(redis: Redis, infos: Sequence[ModelInfo]) -> list[tuple[int, ...]]:
    """Jobs waiting, for each model by level."""
    with redis.pipeline(transaction=False) as pipe:
        for info in infos:
            for queue in model_queues(info.name):
                pipe.llen(keys.queue(queue))
        lengths = iter(pipe.execute())
    return list(zip(lengths, lengths, lengths, strict=True))


def _row(info: ModelInfo, queued: Sequence[int]) -> tuple[str, ...]:
    ladder = ",".join(map(str, info.ladder)) or "-"
    residency = _residency(info.residency)
    words = (info.name, info.state, info.engine, ladder, *queued, *residency, _bounds(info.limits))
    return (*map(one_line, words), one_line(describe(info.signature)))


def _residency(seen: ModelResidency | None) -> tuple[str, ...]:
    if seen is None:
        return ("-",) * len(RESIDENCY)
    used = "-" if seen.used_at_s is None else f"{max(time.time() - seen.used_at_s, 0):.0f} s ago"
    load = f"{seen.load_ms:.0f}" if seen.loads else "-"
    counts = map(str, (seen.hits, seen.loads, seen.evictions))
    return (f"{seen.resident_bytes / 2**20:.0f}", used, *counts, load)


def _bounds(limits: Limits) -> str:
    jobs = f"{limits.max_jobs} jobs" if limits.max_jobs is not None else ""
    size = f"{limits.max_bytes / 2**20:g} MiB" if limits.max_bytes is not None else ""
    return ", ".join(filter(None, (jobs, size))) or "-"


def _plain(info: ModelInfo, queued: Sequence[int]) -> dict[str, Any]:
    plain = {name: value for name, value in json.loads(info.to_json()).items() if name != "v"}
    return {**plain, "queued": dict(zip(LEVELS, queued, strict=True))}
