"""``tensorq worker``."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import click

from tensorq.connection import binary_client, translated
from tensorq.errors import ConfigError
from tensorq_engines import Repository
from tensorq_worker.cli.command import Command
from tensorq_worker.cli.options import redis_option, required
from tensorq_worker.config import load_config
from tensorq_worker.worker import BatchWorker


@click.command(cls=Command)
@click.argument("models", nargs=-1)
@redis_option
@click.option(
    "--models",
    "models_dir",
    type=click.Path(path_type=Path),
    help="The model repository; also TENSORQ_MODELS.",
)
@click.option(
    "--config",
    "config_file",
    type=click.Path(path_type=Path),
    help="A TOML file of settings; also TENSORQ_CONFIG.",
)
@click.option("--name", help="The worker's name.")
@click.option("--burst", is_flag=True, help="End when the queues are empty.")
@click.option("--max-jobs", type=click.IntRange(1), help="End after this many jobs.")
@click.option("--max-idle-time", type=click.IntRange(1), help="End after this many idle seconds.")
@click.option("--with-scheduler", is_flag=True, help="Run RQ's scheduler too (retries with intervals).")
@click.option("--result-ttl", type=int, default=500, show_default=True, help="Seconds a result is kept.")
@click.option("--lease-s", type=int, help="Seconds a claimed job is kept from others without a beat.")
@click.option("--beat-s", type=float, help="Seconds between beats, at most half a lease.")
@click.option("--lanes", type=int, help="Streams that run tiles at once.")
@click.option("--threads", type=int, help="CPU threads of the engine for one tile.")
@click.option("--prefetch-tiles", type=int, help="Largest tiles' worth of rows to stage ahead.")
@click.option("--allow-functions", is_flag=True, default=None, help="Run function jobs too (unpickles).")
@click.option(
    "--load",
    type=click.Choice(["auto", "eager", "lazy", "lru"]),
    help="When models are loaded whose model.toml does not say; auto is lru, and at the start what fits.",
)
@click.option("--budget-mib", type=int, help="Device memory that loaded models may take.")
@click.option("--pinned-mib", type=int, help="Page-locked host memory that slots may take.")
@click.option("--health-file", type=click.Path(path_type=Path), help="A file that says how the worker does.")
@click.option("-v", "--verbose", is_flag=True, help="Log more.")
def worker(
    models: tuple[str, ...],
    redis_url: str | None,
    models_dir: Path | None,
    config_file: Path | None,
    name: str | None,
    burst: bool,
    max_jobs: int | None,
    max_idle_time: int | None,
    with_scheduler: bool,
    result_ttl: int,
    verbose: bool,
    **settings: Any,
) -> None:
    """Serve MODELS of a repository; all of them where none is named."""
    config = load_config({"models": models_dir, **settings}, file=config_file)
    redis = binary_client(required(redis_url))
    names = list(models) or list(Repository(config.models).names)
    if not names:
        raise ConfigError(
            f"{config.models}: no models there; `tensorq models check {config.models}` says what is missing"
        )
    with translated(redis):
        batch_worker = BatchWorker(
            names, name=name, connection=redis, config=config, default_result_ttl=result_ttl
        )
    batch_worker.work(
        burst=burst,
        logging_level="DEBUG" if verbose else "INFO",
        max_jobs=max_jobs,
        max_idle_time=max_idle_time,
        with_scheduler=with_scheduler,
    )
    logging.shutdown()
