"""Puts tests/ on the import path, so that tests share `models.catalogue` and `fixtures`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

# The fixtures `redis` and `redis_server`.
pytest_plugins = ["fixtures.redis"]
