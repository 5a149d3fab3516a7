"""The folder that a server runs in: its socket, its log, its data, and the lock that keeps others out."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from pathlib import Path

from tensorq.embedded.errors import FolderUnusable

# sun_path holds 108 bytes on Linux and 104 on macOS, with the closing zero.
SOCKET_PATH_BYTES = 103
LOCK_PATIENCE_S = 3.0


class Folder:
    """A server's folder, held by a lock that its owner passes on to the server.

    Attributes:
        path: the folder.
        temporary: it was made for this server and goes with it.
        lock_fd: the held lock; the server inherits it, so the folder is free only once the server is gone.
    """

    def __init__(self, path: Path, temporary: bool) -> None:
        self.path = path
        self.temporary = temporary
        self.lock_fd = -1

    @classmethod
    def open(cls, directory: str | os.PathLike[str] | None) -> Folder:
        """Makes, or takes, and locks a folder.

        Raises:
            FolderUnusable: it cannot be made or written, or another server still has it after 3 s.
        """
        try:
            if directory is None:
                folder = cls(Path(tempfile.mkdtemp(prefix="tensorq-")), True)
            else:
                folder = cls(Path(directory).expanduser().absolute(), False)
                folder.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            folder._lock()
        except FolderUnusable:
            raise
        except OSError as exc:
            where = tempfile.gettempdir() if directory is None else os.fspath(directory)
            raise FolderUnusable(
                f"cannot use the folder {where!r}: {exc.strerror}; give a directory that this user can write"
            ) from exc
        return folder

    @property
    def socket(self) -> Path:
        """Path of the unix socket.

        Raises:
            FolderUnusable: the path is longer than the system takes.
        """
        path = self.path / "redis.sock"
        if (length := len(os.fsencode(path))) > SOCKET_PATH_BYTES:
            raise FolderUnusable(
                f"the socket's path {str(path)!r} has {length} bytes and a unix socket takes at most "
                f"{SOCKET_PATH_BYTES}; give a directory with a shorter path, or port=0 for TCP"
            )
        return path

    @property
    def log(self) -> Path:
        """Path of the server's log, which each start begins anew."""
        return self.path / "server.log"

    def release(self) -> None:
        """Drops this process's hold of the lock; the server's own stays. May be called twice."""
        if self.lock_fd >= 0:
            os.close(self.lock_fd)
            self.lock_fd = -1

    def remove(self) -> None:
        """Deletes the folder if it is temporary. May be called twice."""
        if self.temporary:
            shutil.rmtree(self.path, ignore_errors=True)

    def _lock(self) -> None:
        # A server whose owner was killed a moment ago still needs a moment to end.
        fd = os.open(self.path / "server.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        deadline = time.monotonic() + LOCK_PATIENCE_S
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() < deadline:
                    time.sleep(0.05)
                    continue
                os.close(fd)
                raise FolderUnusable(
                    f"another embedded server runs in {str(self.path)!r}; close it, or give another directory"
                ) from None
            self.lock_fd = fd
            return
