"""The application's side of `tensorq.embedded.watcher`: starts it, hears from it, asks it to end."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import sys
import time
from pathlib import Path

from tensorq.embedded import watcher
from tensorq.embedded.errors import EmbeddedRedisError, FolderUnusable
from tensorq.embedded.folder import Folder

CLOSE_TIMEOUT_S = watcher.CLOSE_GRACE_S + 5.0


class Keeper:
    """A watcher process, and through it a server process.

    Attributes:
        server_pid: the server's pid; 0 until the watcher has told it, or if there is none.
        failure: why the server could not be run; empty if it could.
        returncode: the server's exit status, negative for a signal; None while it runs.
    """

    def __init__(self, command: list[str], folder: Folder) -> None:
        """Starts ``command``; what it prints goes to the folder's log.

        Raises:
            FolderUnusable: the log cannot be written.
            EmbeddedRedisError: the watcher itself could not be started.
        """
        self._owner = os.getpid()
        self._heard = b""
        self.server_pid = 0
        self.failure = ""
        self.returncode: int | None = None
        # -I and -S: what the application's environment adds to Python is none of the watcher's business.
        python = [sys.executable, "-I", "-S", str(Path(watcher.__file__))]
        removed = str(folder.path) if folder.temporary else ""
        try:
            log = folder.log.open("wb")
        except OSError as exc:
            raise FolderUnusable(f"cannot write {str(folder.log)!r}: {exc.strerror}") from exc
        with log:
            try:
                self._process = subprocess.Popen(
                    [*python, str(self._owner), removed, str(folder.lock_fd), *command],
                    bufsize=0,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    start_new_session=True,
                    pass_fds=(folder.lock_fd,),
                    cwd=folder.path,
                )
            except OSError as exc:
                raise EmbeddedRedisError(
                    f"cannot start {sys.executable!r} to watch over the server: {exc.strerror}; "
                    "tensorq.embedded needs a Python interpreter at sys.executable"
                ) from exc

    @property
    def owned(self) -> bool:
        """Whether this process started the server, and is not a forked child of the one that did."""
        return os.getpid() == self._owner

    def poll(self) -> int | None:
        """Returns the server's exit status, or None while it runs."""
        return self.wait(0.0)

    def wait(self, timeout_s: float | None = None) -> int | None:
        """Waits until the server has ended, at most ``timeout_s``; returns what `poll` returns."""
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while self.returncode is None and self.owned:
            left = None if deadline is None else deadline - time.monotonic()
            self._hear(None if left is None else max(left, 0.0))
            if left is not None and left <= 0:
                break
        return self.returncode

    def close(self) -> None:
        """Ends the server and the watcher, and waits for both. In a forked child only drops its pipes."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        try:
            if self.owned and self._process.returncode is None:
                # A word, for the pipe does not end while a forked child holds it too.
                with contextlib.suppress(OSError):
                    os.write(stdin.fileno(), b"q")
                try:
                    self._process.wait(CLOSE_TIMEOUT_S)
                except subprocess.TimeoutExpired:
                    # The server goes with it: that is what the kernel was told.
                    self._process.kill()
                    self._process.wait()
        finally:
            stdin.close()
            stdout.close()
            if self.returncode is None:
                self.returncode = 0

    def _hear(self, timeout_s: float | None) -> None:
        """Waits for one piece of news from the watcher, at most ``timeout_s``."""
        pipe = self._process.stdout
        if pipe is None or pipe.closed or not _readable(pipe.fileno(), timeout_s):
            return
        piece = os.read(pipe.fileno(), 4096)
        if not piece:
            self._process.wait()
            self.returncode = -9 if self.returncode is None else self.returncode
            return
        *lines, self._heard = (self._heard + piece).split(b"\n")
        for line in lines:
            word, _, rest = line.decode(errors="replace").partition(" ")
            if word == "started":
                self.server_pid = int(rest)
            elif word == "failed":
                self.failure, self.returncode = rest, 127
            elif word == "ended":
                self.returncode = int(rest)


def _readable(fd: int, timeout_s: float | None) -> bool:
    poll = select.poll()
    poll.register(fd, select.POLLIN | select.POLLHUP)
    return bool(poll.poll(None if timeout_s is None else timeout_s * 1000))
