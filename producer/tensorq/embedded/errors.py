"""What can go wrong with an embedded server; all of it is a `tensorq.errors.RedisUnavailable`."""

from __future__ import annotations

from tensorq.errors import RedisUnavailable


class EmbeddedRedisError(RedisUnavailable):
    """An embedded server could not be started or has ended; the subclass says why."""


class ServerNotFound(EmbeddedRedisError):
    """There is no redis-server or valkey-server to run; the message says how to get one."""


class PortTaken(EmbeddedRedisError):
    """Another process listens on the TCP port that was asked for."""


class FolderUnusable(EmbeddedRedisError):
    """The server's folder cannot be made or written, its path is too long, or another server has it."""


class ServerDied(EmbeddedRedisError):
    """The server ended on its own.

    Attributes:
        log: the last lines that it wrote.
    """

    def __init__(self, message: str, log: str = "") -> None:
        super().__init__(f"{message}; its last lines were:\n{log}" if log else message)
        self.log = log


class StartTimeout(EmbeddedRedisError):
    """The server runs but did not answer PING in time."""
