"""Report: the tables of a run, from its JSON.

python ops/bench/gpu/residency/report.py FILE.json
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

MIB = 2**20
SHORT = ("tiny_cnn", "mid_cnn", "resnet18")


def render(found: Mapping[str, Any]) -> str:
    """Returns all tables; parts that are missing or failed are left out."""
    lines: list[str] = []
    for name, write in WRITERS.items():
        if found.get(name):
            lines += [f"== {name} ({found['seconds'][name]} s)", *write(found[name]), ""]
    faults = found["faults"]
    lines += [f"{len(faults)} bounds broken or parts failed:", *faults] if faults else ["all bounds hold"]
    return "\n".join(lines)


def _articles(part: Mapping[str, Any]) -> list[str]:
    head = [
        "mode",
        "start s",
        "MiB start",
        "MiB hot",
        "first ms",
        "reload request ms",
        "p50 ms",
        "loads",
        "evictions",
    ]
    rows = []
    for name, mode in part["modes"].items():
        if "error" in mode:
            rows.append([name, "failed", *[""] * 7])
            continue
        rows.append(
            [
                name,
                mode["ready_s"],
                _mib(mode["resident_start_bytes"]),
                _mib(mode["resident_peak_bytes"]),
                _each(mode["first_ms"]),
                _each({model: _span(times) for model, times in mode["reload_request_ms"].items()}),
                _each(mode["steady_p50_ms"]),
                _each(mode["loads"]),
                sum(mode["evictions"].values()),
            ]
        )
    for policy, published in part["article"]["strategies"].items():
        first = " / ".join(map(str, published["first_ms"]))
        reload = "-".join(map(str, published.get("reload_request_ms", [])))
        resident = [published["resident_start_mib"], published["resident_hot_mib"]]
        p50 = published.get("steady_p50_ms", "")
        rows.append([f"article, {policy}", published["startup_s"], *resident, first, reload, p50, "", ""])
    table = _table(head, rows)
    for name, mode in part["modes"].items():
        table += [f"  {name}: {model} refused" for model in mode.get("refused", {})]
    return table


def _activation(part: Mapping[str, Any]) -> list[str]:
    lines = []
    for key, axis in (("by_rows", "rows"), ("by_side", "side")):
        published = {str(size): value for size, value in part["article_mib"][key].items()}
        keys = ("described_bytes", "device_memory_size_bytes", "private_growth_bytes", "shared_growth_bytes")
        rows = [
            [size, *(_mib(sizes[name]) for name in keys), published.get(size, "")]
            for size, sizes in part[key].items()
        ]
        lines += _table([axis, "sidecar", "engine", "grown private", "grown shared", "article (MiB)"], rows)
    return lines


def _timeline(part: Mapping[str, Any]) -> list[str]:
    rows = [
        [arena, len(points), _mib(max(size for _, size in points)), sum(part[arena]["evictions"].values())]
        for arena in ("private", "shared")
        if (points := part.get(arena, {}).get("points"))
    ]
    return _table(["arena", "points", "MiB at most", "evictions"], rows)


def _together(part: Mapping[str, Any]) -> list[str]:
    alone = [[name, seen["rows_s"], seen["busy"]] for name, seen in part["alone"].items()]
    rows = [
        [name, way, pair[way]["total_rows_s"], pair[way]["busy"], pair[way]["sum_of_ratios"], pair["holds"]]
        for name, pair in part["pairs"].items()
        for way in ("one_lane", "two_lanes")
        if way in pair
    ]
    return [
        *_table(["alone", "rows/s", "busy"], alone),
        *_table(["together", "", "rows/s", "busy", "sum of together/alone", "holds"], rows),
        f"  article: {part['article']['sum_of_ratios']}",
    ]


def _cycles(part: Mapping[str, Any]) -> list[str]:
    rows = []
    for key in ("one_lane", "two_lanes"):
        if "error" not in part[key]:
            run = part[key]
            growth, drift = run["same_set_growth_bytes"], run["drift_bytes"]
            rows.append(
                [
                    key,
                    run["cycles"],
                    sum(run["loads"].values()),
                    sum(run["evictions"].values()),
                    len(run["failures"]),
                    f"{_mib(drift['least'])} to {_mib(drift['most'])}",
                    run["disagreements"],
                    _mib(run["drift_growth_bytes"] if growth is None else growth),
                ]
            )
    head = ["", "cycles", "loads", "evictions", "failures", "drift MiB", "disagree", "growth MiB"]
    return _table(head, rows)


def _sources(part: Mapping[str, Any]) -> list[str]:
    rows = [[name, seen["ms"], seen["found"]] for name, seen in part["find_ms"].items()]
    return _table(["plan of model.onnx", "ms to find", "found"], rows)


WRITERS: dict[str, Callable[[Mapping[str, Any]], list[str]]] = {
    "articles": _articles,
    "activation": _activation,
    "timeline": _timeline,
    "together": _together,
    "cycles": _cycles,
    "sources": _sources,
}


def _table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    cells = [list(head), *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(head))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    ]


def _each(values: Mapping[str, object]) -> str:
    return " / ".join(str(values.get(name, "-")) for name in SHORT)


def _span(times: Sequence[float]) -> str:
    return f"{min(times)}-{max(times)}" if times else "-"


def _mib(size: int) -> float:
    return round(size / MIB, 1)


if __name__ == "__main__":
    print(render(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))))
