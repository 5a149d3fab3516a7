"""The planner's tilings by measured costs, for 1 to 200 rows, against simpler ones and brute force.

    python ops/bench/tiling/bench.py [FOLDER]

Reads the cost tables in FOLDER, by default ops/bench/results. Fails where the planner is dearer than brute
force, than always padding up, or than trimming to the preferred size below.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / part) for part in ("", "producer", "engines", "worker")]

from ops.bench.tiling.compare import Compared, compare  # noqa: E402
from ops.bench.tiling.tables import MeasuredCosts, read_tables  # noqa: E402

MOST_ROWS = 200
HEAD = (
    "model",
    "row",
    "sizes: ms",
    "planner ms",
    "pad-up",
    "trim",
    "brute force",
    "most over pad-up",
    "over trim",
)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "ops" / "bench" / "results")
    parser.add_argument("--rows", type=int, default=MOST_ROWS, help="the most rows (default %(default)s)")
    options = parser.parse_args(arguments)
    try:
        tables = read_tables(options.folder)
    except FileNotFoundError as exc:
        parser.error(str(exc))
    lines, faults = [], []
    for table in tables:
        found = compare(table.costs_ms, options.rows)
        lines.append(_line(table, found))
        faults += [
            f"{table.model} {table.shape} {one.rows} rows: {one.planner:.4f} ms, dearer than {name}"
            for one in found
            for name in one.faults
        ]
    files = ", ".join(sorted({table.file for table in tables}))
    print(f"Costs of {files}, summed over 1..{options.rows} rows; others as multiples of the planner\n")
    _print([HEAD, *lines])
    for fault in faults:
        print(fault, file=sys.stderr)
    word = "FAILED" if faults else "ok"
    print(f"\n{word}: {len(tables)} tables, {len(faults)} tilings dearer than another")
    return 1 if faults else 0


def _line(table: MeasuredCosts, found: Sequence[Compared]) -> tuple[str, ...]:
    sums = [sum(getattr(one, name) for one in found) for name in ("planner", "pad_up", "trim", "brute")]
    return (
        table.model,
        table.shape or "-",
        " ".join(f"{size}:{cost:.3f}" for size, cost in table.costs_ms.items()),
        f"{sums[0]:.1f}",
        f"{sums[1] / sums[0]:.3f}x",
        f"{sums[2] / sums[0]:.3f}x",
        f"{sums[3] / sums[0]:.3f}x",
        _worst(found, lambda one: one.pad_up),
        _worst(found, lambda one: one.trim),
    )


def _worst(found: Sequence[Compared], cost: Callable[[Compared], float]) -> str:
    one = max(found, key=lambda one: cost(one) / one.planner)
    return f"{cost(one) / one.planner:.2f}x at {one.rows}"


def _print(rows: Sequence[tuple[str, ...]]) -> None:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip())


if __name__ == "__main__":
    sys.exit(main())
