"""Draws what the residency bench found on a GPU: device memory over time, and activations by size.

    python ops/bench/plot_residency.py ops/bench/results/h200-residency-DATE.json docs/residency.png

Needs matplotlib: pip install 'tensorq[bench]'.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

MIB = 2**20
LABEL_WIDTH = 0.02
"""Of the axis, between two labels."""
TITLES = {"private": "activations of each model's own", "shared": "activations shared by a lane's models"}


def draw(found: Mapping[str, Any], out: Path) -> None:
    """Draws one figure: a panel for each kind of arena, memory as steps, requests as marks, the budget.

    Args:
        found: the bench's JSON, with its part ``timeline``.
        out: the PNG.
    """
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    timeline = found["timeline"]
    budget_mib = timeline["budget_bytes"] / MIB
    drawn = [arena for arena in TITLES if timeline.get(arena, {}).get("points")]
    if not drawn:
        raise SystemExit("the file has no points of a timeline: run the bench's part 'timeline'")
    figure, axes = plt.subplots(len(drawn), 1, figsize=(9, 2.6 * len(drawn)), sharey=True, squeeze=False)
    for axis, arena in zip(axes[:, 0], drawn, strict=True):
        part = timeline[arena]
        times_ms = [1000 * at_s for at_s, _ in part["points"]]
        axis.step(times_ms, [size / MIB for _, size in part["points"]], where="post", linewidth=1.2)
        axis.axhline(budget_mib, color="tab:red", linestyle="--", linewidth=1)
        axis.text(
            times_ms[-1], budget_mib * 0.98, "budget", color="tab:red", fontsize=8, ha="right", va="top"
        )
        labelled_ms = -math.inf
        for at_s, name in part["marks"]:
            axis.axvline(1000 * at_s, color="0.85", linewidth=0.8, zorder=0)
            # Requests that load nothing come too close to each other to be named.
            if 1000 * at_s - labelled_ms > LABEL_WIDTH * times_ms[-1]:
                axis.annotate(name, (1000 * at_s, budget_mib * 1.04), rotation=90, fontsize=6, va="bottom")
                labelled_ms = 1000 * at_s
        evictions = sum(part["evictions"].values())
        axis.set_title(f"lru, {TITLES[arena]}: {evictions} evictions", fontsize=10, loc="left")
        axis.set_ylabel("MiB in use")
        axis.set_ylim(0, budget_mib * 1.45)
    axes[-1, 0].set_xlabel("ms, four rounds of three models, one request each")
    environment = found["environment"]
    words = f"{environment['gpu']}, TensorRT {environment.get('tensorrt')}, {environment['date']}"
    figure.text(0.995, 0.005, words, ha="right", fontsize=7, color="0.4")
    figure.tight_layout()
    out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out, dpi=140)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("results", type=Path, help="JSON of ops/bench/gpu/residency/bench.py")
    parser.add_argument("out", type=Path, help="PNG to write")
    options = parser.parse_args(arguments)
    draw(json.loads(options.results.read_text(encoding="utf-8")), options.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
