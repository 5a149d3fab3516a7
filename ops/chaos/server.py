"""A redis-server that keeps whatever it has acknowledged, and that can be ended and started again."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path
from typing import Any, Self

from redis import Redis
from redis.exceptions import RedisError

from tensorq.embedded.binary import find_binary

START_S = 30.0


class Server:
    """One server on a unix socket, with every write on disk before it is acknowledged.

    Args:
        folder: for its socket, its log and its data; the socket's path must stay below 108 bytes.
        program: what to run; None for the first that is found.
    """

    def __init__(self, folder: Path, program: str | None = None) -> None:
        self.url = f"unix://{folder / 'redis.sock'}"
        self._log = folder / "redis.log"
        self._command = [
            *(str(find_binary(program)), "--port", "0", "--unixsocket", str(folder / "redis.sock")),
            *("--dir", str(folder), "--logfile", str(self._log), "--save", ""),
            *("--appendonly", "yes", "--appendfsync", "always"),
        ]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Starts it and waits until it has loaded its data.

        Raises:
            SystemExit: it does not answer.
        """
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL, start_new_session=True)
        give_up = time.monotonic() + START_S
        with self.client() as redis:
            while True:
                try:
                    redis.ping()
                    return
                except RedisError:
                    if time.monotonic() > give_up or self._process.poll() is not None:
                        tail = self._log.read_text(errors="replace")[-2000:]
                        raise SystemExit(f"redis-server does not start:\n{tail}") from None
                    time.sleep(0.01)

    def end(self, kill: bool) -> None:
        """Ends it: by kill -9, or as a supervisor would."""
        if self._process is not None:
            if kill:
                self._process.kill()
            else:
                self._process.terminate()
            self._process.wait()
            self._process = None

    def client(self, **settings: Any) -> Redis:
        """A new client, which does not try again by itself."""
        return Redis.from_url(self.url, **settings)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.end(kill=True)
