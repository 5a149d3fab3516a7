"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path

import click

from tensorq import Client
from tensorq.errors import ConfigError

NO_REDIS = (
    "no Redis: give --redis URL or set TENSORQ_REDIS. For a server of your own for a while, run "
    "`python -m tensorq.embedded` in another terminal and use the URL that it prints"
)

redis_option = click.option(
    "--redis", "redis_url", envvar="TENSORQ_REDIS", help="Redis URL; also TENSORQ_REDIS."
)
out_option = click.option(
    "-o",
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("out"),
    show_default=True,
    help="Where results are written, one .npz file a job.",
)


def required(redis_url: str | None) -> str:
    """Returns the URL.

    Raises:
        ConfigError: there is none.
    """
    if not redis_url:
        raise ConfigError(NO_REDIS)
    return redis_url


def connect(redis_url: str | None) -> Client:
    """Returns a client of the Redis that was named.

    Raises:
        ConfigError: none was, or its URL is malformed.
    """
    return Client(required(redis_url))
