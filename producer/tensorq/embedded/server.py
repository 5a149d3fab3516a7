"""`EmbeddedRedis`: a Redis server that lives as long as the process that started it."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import quote

from tensorq.embedded.binary import find_binary
from tensorq.embedded.errors import EmbeddedRedisError, PortTaken, ServerDied
from tensorq.embedded.folder import Folder
from tensorq.embedded.keeper import Keeper
from tensorq.embedded.log import tail
from tensorq.embedded.probe import wait_until_ready
from tensorq.embedded.settings import Settings

FREE_PORT_TRIES = 5


class EmbeddedRedis:
    """A private Redis or Valkey server, a child of this process.

    It starts with ``with`` or `start` and ends with `close`. It also ends, within about 3 s, when this
    process ends in any other way, be it ``kill -9``. Ctrl-C does not reach it: this process gets to finish
    with it first. Forked children may use its `url`; only the process that started it can end it. Keep the
    object: a server whose object is garbage ends too.

    Everything that goes wrong is a `tensorq.embedded.EmbeddedRedisError`, which is a
    `tensorq.errors.RedisUnavailable`; malformed settings are a `tensorq.errors.ConfigError`.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str] | None = None,
        *,
        port: int | None = None,
        appendonly: bool = False,
        binary: str | os.PathLike[str] | None = None,
        maxmemory: int | str | None = None,
        start_timeout_s: float = 5.0,
        config: Mapping[str, str] | None = None,
    ) -> None:
        """Checks the settings; nothing is started or written yet.

        Args:
            directory: the server's folder, made if need be and kept at the end; None for a temporary one.
            port: None for a unix socket in the folder, which only this user can open. 0 for a free TCP port
                of 127.0.0.1, else that port: any user of this host can connect to it.
            appendonly: write an append-only file, synced about once a second, into the folder.
            binary: path or name of the server program; None to look for one.
            maxmemory: most memory for data: bytes, or a text such as ``"100mb"``. None for no limit.
            start_timeout_s: longest wait for the first answer, in seconds.
            config: further parameters of redis.conf, such as ``{"maxmemory-policy": "noeviction"}``.

        Raises:
            ConfigError: a setting is malformed, or is one that an embedded server sets itself.
        """
        self._directory = directory
        self._binary = binary
        self._settings = Settings(port, appendonly, maxmemory, start_timeout_s, dict(config or {}))
        self._keeper: Keeper | None = None
        self._folder: Folder | None = None
        self._program: Path | None = None
        self._url = ""
        self._last_log = ""

    def start(self) -> Self:
        """Starts the server and waits until it answers.

        Raises:
            ServerNotFound: there is no program to run.
            FolderUnusable: the folder cannot be used.
            PortTaken: another process has the port.
            ServerDied: the server ended at once; the message holds its last lines.
            StartTimeout: it did not answer in time.
        """
        if self._keeper is not None:
            raise EmbeddedRedisError("this server was started already; close() it first")
        self._program = find_binary(self._binary)
        tries = FREE_PORT_TRIES if self._settings.port == 0 else 1
        while True:
            tries -= 1
            try:
                self._start_once(self._program)
                return self
            except BaseException as exc:
                self.close()
                if not (isinstance(exc, PortTaken) and tries):
                    raise

    def close(self) -> None:
        """Ends the server and removes a temporary folder. May be called twice; `start` may follow."""
        keeper, folder = self._keeper, self._folder
        self._keeper = self._folder = None
        if folder is not None:
            self._last_log = tail(folder.log)
            folder.release()
        if keeper is not None:
            keeper.close()
            if folder is not None and keeper.owned:
                folder.remove()
        elif folder is not None:
            folder.remove()

    def wait(self, timeout_s: float | None = None) -> int | None:
        """Waits until the server has ended on its own, at most ``timeout_s`` seconds.

        Returns:
            Its exit status, negative for a signal, or None if it still runs.
        """
        return self._running().wait(timeout_s)

    @property
    def url(self) -> str:
        """URL for redis-py and RQ: ``unix://...`` or ``redis://127.0.0.1:PORT``."""
        self._running()
        return self._url

    @property
    def pid(self) -> int:
        """The server's pid."""
        return self._running().server_pid

    @property
    def binary(self) -> Path:
        """The program that runs, or would be run.

        Raises:
            ServerNotFound: there is none.
        """
        return self._program if self._program is not None else find_binary(self._binary)

    @property
    def durable(self) -> bool:
        """Whether the data is on disk and stays: an append-only file in a folder that was given."""
        return self._settings.appendonly and self._directory is not None

    def log_tail(self, lines: int = 20) -> str:
        """Returns the last lines of the server's log; after `close`, those from just before."""
        if self._folder is None:
            return "\n".join(self._last_log.splitlines()[-lines:])
        return tail(self._folder.log, lines)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _running(self) -> Keeper:
        if self._keeper is None:
            raise EmbeddedRedisError("this server is not running; use it in a `with` block or call start()")
        return self._keeper

    def _start_once(self, program: Path) -> None:
        self._folder = folder = Folder.open(self._directory)
        port, path = 0, None
        if self._settings.port is None:
            path = folder.socket
            self._url = f"unix://{quote(str(path))}"
        else:
            port = self._settings.port or _free_port()
            self._url = f"redis://127.0.0.1:{port}"
        self._keeper = keeper = Keeper(self._settings.command(program, folder.path, path, port), folder)
        # From here on the server and its watcher alone hold the folder, not this process and what it forks.
        folder.release()
        if not wait_until_ready(self._url, keeper, self._settings.start_timeout_s):
            raise self._death(program, port, keeper)

    def _death(self, program: Path, port: int, keeper: Keeper) -> EmbeddedRedisError:
        log = self.log_tail().strip()
        if keeper.failure:
            return ServerDied(f"{str(program)!r} could not be run: {keeper.failure}", log)
        if "Address already in use" in log:
            return PortTaken(
                f"port {port} of 127.0.0.1 is taken by another process; give another port, port=0 for any "
                "free one, or no port for a private unix socket"
            )
        code = keeper.returncode or 0
        how = f"by {signal.Signals(-code).name}" if code < 0 else f"with status {code}"
        return ServerDied(f"{str(program)!r} ended {how} at its start", log)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
