"""A server's settings, checked, and the command line that they make."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tensorq.errors import ConfigError

# Set by us; another value would leave the server unreachable, unwatched or unprotected.
RESERVED = frozenset(
    {
        "aclfile", "appendonly", "bind", "daemonize", "dir", "include", "logfile", "maxmemory",
        "pidfile", "port", "protected-mode", "requirepass", "supervised", "tls-port", "unixsocket",
        "unixsocketperm", "user",
    }
)  # fmt: skip
PARAMETER = re.compile(r"[A-Za-z][A-Za-z0-9-]*")


@dataclass(frozen=True, slots=True)
class Settings:
    """What an embedded server is started with.

    Attributes:
        port: None for a private unix socket, 0 for any free TCP port of 127.0.0.1, else that port.
        appendonly: keep an append-only file, synced about once a second.
        maxmemory: most memory for data, in bytes or in the server's notation such as ``"100mb"``.
        start_timeout_s: longest wait for the first PING, in seconds.
        config: further parameters of redis.conf; a value with blanks gives several arguments.
    """

    port: int | None = None
    appendonly: bool = False
    maxmemory: int | str | None = None
    start_timeout_s: float = 5.0
    config: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.port is not None and not 0 <= self.port <= 65535:
            raise ConfigError(f"port={self.port!r}: expected None for a unix socket, 0, or a port to 65535")
        if self.start_timeout_s <= 0:
            raise ConfigError(f"start_timeout_s={self.start_timeout_s!r}: expected seconds above 0")
        for key in self.config:
            if not PARAMETER.fullmatch(key):
                raise ConfigError(f"config: {key!r} is not a parameter of redis.conf, such as 'maxclients'")
            if key.lower() in RESERVED:
                raise ConfigError(
                    f"config: an embedded server sets {key!r} itself; use the argument of that name if there "
                    "is one, else run a server of your own and give its URL"
                )

    def command(self, binary: Path, folder: Path, socket: Path | None, port: int) -> list[str]:
        """Returns the command line of a server on ``socket``, or on ``port`` of 127.0.0.1 without one."""
        options: dict[str, str] = {
            "save": "",
            # A stream of one entry, RQ's record of a job's end, takes 4 KiB at the default of 4096.
            "stream-node-max-bytes": "512",
            **self.config,
            "dir": str(folder),
            "daemonize": "no",
            "appendonly": "yes" if self.appendonly else "no",
            "port": str(port if socket is None else 0),
            "bind": "127.0.0.1",
        }
        if socket is not None:
            options |= {"unixsocket": str(socket), "unixsocketperm": "700"}
        if self.maxmemory is not None:
            options["maxmemory"] = str(self.maxmemory)
        command = [str(binary)]
        for key, value in options.items():
            values = str(value).split() if key in self.config else [value]
            command += [f"--{key}", *(values or [""])]
        return command
