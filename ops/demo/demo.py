"""Reads two scanned pages, every inference through the queue, and compares with reading them alone.

    python ops/demo/demo.py [--copies 1] [--out out/demo]

Starts a Redis server and one worker of its own, and ends both. Exit status: 0 if all text was equal, 1 if
not or if anything failed, 2 if a package is missing.
"""

from __future__ import annotations

import argparse
import importlib.util
import signal
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

PACKAGES = ("rapidocr_onnxruntime", "skimage", "PIL", "onnxruntime", "tensorq", "tensorq_worker")


def main() -> int:
    options = _parser().parse_args()
    missing = [name for name in PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        print(f"the demo needs {', '.join(missing)}: run `make setup`, then `make demo`", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        return _run(options.copies, options.out)
    except KeyboardInterrupt:
        return 130


def _run(copies: int, out: Path) -> int:
    from ops.demo.failure import DemoFailure
    from ops.demo.run import run

    from tensorq.errors import TensorqError

    try:
        return run(copies, out)
    except (DemoFailure, TensorqError) as exc:
        print(f"demo failed: {exc}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Read two scanned pages through the queue.")
    parser.add_argument(
        "--copies", type=_positive, default=1, help="times that each page is read, all at once"
    )
    parser.add_argument("--out", type=Path, default=ROOT / "out" / "demo", help="folder for the pictures")
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"got {text}, expected 1 or more")
    return number


if __name__ == "__main__":
    sys.exit(main())
