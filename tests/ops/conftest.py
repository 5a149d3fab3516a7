import sys
from pathlib import Path

# The benches are scripts, which find each other from the root.
sys.path.insert(0, str(Path(__file__).parents[2]))
