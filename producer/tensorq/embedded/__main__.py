"""``python -m tensorq.embedded``: a server for a while, in the foreground."""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence
from types import FrameType

from tensorq.embedded.server import EmbeddedRedis
from tensorq.errors import TensorqError


def main(argv: Sequence[str] | None = None) -> int:
    """Runs a server until Ctrl-C; prints its URL on standard output.

    Returns:
        0 after Ctrl-C, 1 if the server could not be started or ended on its own.
    """
    options = _parser().parse_args(argv)
    try:
        with EmbeddedRedis(
            options.directory,
            port=options.port,
            appendonly=options.appendonly,
            binary=options.binary,
            maxmemory=options.maxmemory,
        ) as server:
            print(server.url, flush=True)
            kept = "kept" if server.durable else "gone at the end"
            print(f"{server.binary}, pid {server.pid}; data is {kept}; Ctrl-C ends it", file=sys.stderr)
            code = server.wait()
            print(f"error: the server ended with status {code}:\n{server.log_tail()}", file=sys.stderr)
    except TensorqError as exc:
        print(f"error: {exc}", file=sys.stderr)
    except KeyboardInterrupt:
        return 0
    return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tensorq.embedded", description="Run a Redis server until Ctrl-C and print its URL."
    )
    parser.add_argument("--directory", help="the server's folder, kept at the end (default: a temporary one)")
    parser.add_argument("--port", type=int, help="TCP port on 127.0.0.1, 0 for any (default: a unix socket)")
    parser.add_argument("--appendonly", action="store_true", help="keep the data in --directory")
    parser.add_argument("--binary", help="the server program (default: redis-server or valkey-server)")
    parser.add_argument("--maxmemory", help="most memory for data, such as 100mb")
    return parser


def _interrupt(signum: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, _interrupt)
    sys.exit(main())
