"""Puts tests/ on the import path, so that tests share `models.catalogue`, `fixtures` and `contract`.

And the root, for `ops`.
"""

import signal
import sys
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parents[n]) for n in (0, 1)]
# A suite that runs in the background ignores Ctrl-C, and would pass that on to what it starts.
signal.signal(signal.SIGINT, signal.default_int_handler)
pytest.register_assert_rewrite("contract")

# The fixtures `redis`, `redis_server` and `later`.
pytest_plugins = ["fixtures.redis", "fixtures.timers"]
