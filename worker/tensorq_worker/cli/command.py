"""Command: where errors become one line on stderr and an exit code."""

from __future__ import annotations

import errno
import os
from typing import Any

import click
from redis.exceptions import RedisError

from tensorq.errors import ConfigError, InputError, QueueFull, RedisUnavailable, TensorqError, WireError
from tensorq_engines import RepositoryError
from tensorq_worker.errors import one_line

EX_FAILED = 1
EX_INTERRUPTED = 130

# What a full or broken disk answers to a write; it names no file.
_UNWRITTEN = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)

_CODES: tuple[tuple[type[Exception], int], ...] = (
    (RedisUnavailable, os.EX_UNAVAILABLE),
    (RedisError, os.EX_UNAVAILABLE),
    (ConfigError, os.EX_CONFIG),
    (RepositoryError, os.EX_CONFIG),
    (QueueFull, os.EX_TEMPFAIL),
    (InputError, os.EX_DATAERR),
    (WireError, os.EX_DATAERR),
    (TensorqError, EX_FAILED),
    (OSError, os.EX_IOERR),
)


class Command(click.Command):
    """A command that ends with a line and an exit code where a user can do something about it.

    That is each error of tensorq's tree, of Redis and of the file system; Ctrl-C ends it without a word.
    """

    def invoke(self, ctx: click.Context) -> Any:
        """Runs the command; see the class."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            ctx.exit(EX_INTERRUPTED)
        except (TensorqError, RedisError, OSError) as exc:
            words: object = exc
            if isinstance(exc, OSError) and not isinstance(exc, TensorqError | RedisError):
                # Only what concerns a user's file; click itself deals with a pipe that nobody reads.
                if exc.filename is None and exc.errno not in _UNWRITTEN:
                    raise
                words = f"{exc.filename or 'the output cannot be written'}: {exc.strerror}"
            click.echo(f"{ctx.command_path}: {one_line(words)}", err=True)
            ctx.exit(next(code for kind, code in _CODES if isinstance(exc, kind)))
