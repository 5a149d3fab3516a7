"""Options that several commands share."""

from __future__ import annotations

import re
from pathlib import Path

import click
from click.core import ParameterSource

from tensorq import Client
from tensorq.errors import ConfigError

NO_REDIS = (
    "no Redis: give --redis URL or set TENSORQ_REDIS. For a server of your own for a while, run "
    "`python -m tensorq.embedded` in another terminal and use the URL that it prints"
)
IN_PS = (
    "everyone on this host can read the password of --redis in the list of processes; "
    "put the URL into TENSORQ_REDIS"
)
# Of redis://user:password@host and of unix://path?password=...; the URL may be malformed otherwise.
_PASSWORD = re.compile(r"://[^/?#]*:[^/?#]*@|[?&]password=")


def _warn_of_password(ctx: click.Context, option: click.Parameter, url: str | None) -> str | None:
    named = ctx.get_parameter_source(option.name or "") is ParameterSource.COMMANDLINE
    if named and url and _PASSWORD.search(url):
        click.echo(f"{ctx.command_path}: warning: {IN_PS}", err=True)
    return url


redis_option = click.option(
    "--redis",
    "redis_url",
    envvar="TENSORQ_REDIS",
    callback=_warn_of_password,
    help="Redis URL; also TENSORQ_REDIS, which does not show a password in `ps`.",
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
