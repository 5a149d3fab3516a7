"""The process between an application and its server: it ends the server when the application ends.

Run as a file by a bare interpreter, so it needs the standard library alone. It is the server's parent and
has one thread, which makes the kernel's parent-death signal exact for the server: if the watcher itself is
killed, the server goes too. The application's end shows in three ways, any of which is enough: its end of
the pipe on standard input is closed; its pidfd is readable, also where forked children keep the pipe open;
it is no longer this process's parent.

Standard output carries to the application: ``started PID``, ``failed REASON``, ``ended CODE``.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable

PR_SET_PDEATHSIG = 1
TICK_MS = 250
ORPHAN_GRACE_S = 2.0
CLOSE_GRACE_S = 5.0


def main(owner: int, folder: str, lock_fd: int, command: list[str]) -> int:
    """Runs ``command`` until the owner asks for its end or is gone.

    Args:
        owner: pid of the application, this process's parent.
        folder: a temporary folder to remove at the end; empty for none.
        lock_fd: the folder's lock, which the server inherits.
        command: the server's command line.
    """
    for ignored in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
        signal.signal(ignored, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    server = None
    # What goes with its folder needs no time to be written out.
    grace_s = 0.0 if folder else ORPHAN_GRACE_S
    try:
        try:
            server = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=sys.stderr,
                start_new_session=True,
                pass_fds=(lock_fd,),
                preexec_fn=_die_with_parent(os.getpid()),
            )
        except OSError as exc:
            _tell(f"failed {exc.strerror}")
        else:
            _tell(f"started {server.pid}")
        if _wait(owner, server) and not folder:
            grace_s = CLOSE_GRACE_S
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if server is not None:
            _end(server, grace_s)
        if folder:
            shutil.rmtree(folder, ignore_errors=True)
    return 0


def _wait(owner: int, server: subprocess.Popen[bytes] | None) -> bool:
    """Returns True once the owner asked for the end, False once it is gone."""
    poll = select.poll()
    poll.register(0, select.POLLIN | select.POLLHUP)
    pidfds = [_pidfd(owner), _pidfd(server.pid) if server is not None else None]
    for fd in pidfds:
        if fd is not None:
            poll.register(fd, select.POLLIN)
    while True:
        if os.getppid() != owner:
            return False
        if server is not None and server.poll() is not None:
            # The folder stays: the owner may still want to read the log.
            _kill_group(server.pid)
            _tell(f"ended {server.returncode}")
            if pidfds[1] is not None:
                poll.unregister(pidfds[1])
            server = None
        ready = [fd for fd, _ in poll.poll(None if None not in pidfds else TICK_MS)]
        if 0 in ready:
            return os.read(0, 1) == b"q"


def _pidfd(pid: int) -> int | None:
    try:
        return os.pidfd_open(pid)
    except (AttributeError, OSError):
        return None


def _die_with_parent(watcher: int) -> Callable[[], None] | None:
    try:
        import ctypes

        prctl = ctypes.CDLL(None).prctl
    except (ImportError, OSError, AttributeError):
        return None

    def arm() -> None:
        prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != watcher:
            os._exit(1)

    return arm


def _end(server: subprocess.Popen[bytes], grace_s: float) -> None:
    if grace_s and server.poll() is None:
        server.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            server.wait(grace_s)
    _kill_group(server.pid)
    server.wait()


def _kill_group(leader: int) -> None:
    # Children too, which the server forks to rewrite its files.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def _tell(line: str) -> None:
    with contextlib.suppress(OSError):
        os.write(1, line.encode() + b"\n")


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4:]))
