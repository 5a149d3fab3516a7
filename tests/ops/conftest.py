"""Puts the project's root on the import path, where ``ops`` is."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))
