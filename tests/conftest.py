"""Puts tests/ on the import path, so that tests share `models.catalogue`, `fixtures` and `contract`."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
pytest.register_assert_rewrite("contract")

# The fixtures `redis` and `redis_server`.
pytest_plugins = ["fixtures.redis"]
