"""The command line."""

from tensorq_worker.cli.main import main

__all__ = ["main"]
