"""Together: two models at once against each alone, fed from host memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from statistics import median
from typing import Any

from ops.bench.gpu.residency import article
from ops.bench.gpu.residency.engines import make_tile, open_engine, plan_path
from ops.bench.gpu.residency.feeding import Rates, Source, feed

from tensorq_engines.tensorrt.lane import TensorRtLane

PAIRS = (
    ("rec", "resnet18-uint8"),
    ("rec", "resnet18"),
    ("resnet18", "tiny_cnn"),
    ("rec/8", "resnet18-uint8/8"),
)
"""Models, in tiles of the ladder's largest size or of the rows behind the stroke."""
SLOTS = 4
LEAST_BUSY = 0.8
LEAST_SUM = {"one_lane": 0.95, "two_lanes": 1.1}

Way = tuple[str, tuple[str, ...]]
"""``alone``, ``one_lane`` or ``two_lanes``, and the models."""


def measure(models: Path, seconds: float = 2.0, rounds: int = 3) -> dict[str, Any]:
    """Feeds each model alone and each pair on one lane and on two, in turns; medians of all rounds.

    Models without a plan are left out, and said to be.
    """
    labels = dict.fromkeys(label for pair in PAIRS for label in pair)
    missing = {label for label in labels if plan_path(models, _model(label)) is None}
    pairs = [pair for pair in PAIRS if not missing & set(pair)]
    ways: list[Way] = [
        ("alone", (label,)) for label in dict.fromkeys(label for pair in pairs for label in pair)
    ]
    ways += [(way, pair) for pair in pairs for way in LEAST_SUM]
    with ExitStack() as stack:
        names = dict.fromkeys(_model(label) for label in labels if label not in missing)
        engines = {name: stack.enter_context(open_engine(models, name)) for name in names}
        sources = {}
        for label in (label for label in labels if label not in missing):
            engine, rows = engines[_model(label)], label.partition("/")[2]
            tile = make_tile(engine, int(rows) if rows else engine.ladder[-1])
            sources[label] = Source(label, engine, tile)
        lanes = [stack.enter_context(TensorRtLane(SLOTS)) for _ in range(2)]
        samples: dict[Way, list[Rates]] = {way: [] for way in ways}
        # Twice: a larger tile moves what a smaller one's graphs know, which are then captured anew.
        for warm_s in (0.3, 0.1):
            for way in ways:
                _feed(way, sources, lanes, min(seconds, warm_s))
        for _ in range(rounds):
            for way in ways:
                samples[way].append(_feed(way, sources, lanes, seconds))
    rows_a_tile = {label: source.rows for label, source in sources.items()}
    return summarize(samples, rows_a_tile) | {"without_plan": sorted(missing)}


def _model(label: str) -> str:
    return label.partition("/")[0]


def _feed(way: Way, sources: Mapping[str, Source], lanes: Sequence[TensorRtLane], seconds: float) -> Rates:
    kind, names = way
    mine = [sources[name] for name in names]
    if kind == "two_lanes":
        return feed([(lane, [source]) for lane, source in zip(lanes, mine, strict=True)], seconds)
    return feed([(lanes[0], mine)], seconds)


def summarize(samples: Mapping[Way, Sequence[Rates]], rows: Mapping[str, int]) -> dict[str, Any]:
    """Returns medians, sums of together/alone, and whether a pair keeps the bounds. Pure."""
    alone = {names[0]: seen for (kind, names), seen in samples.items() if kind == "alone"}
    rates = {name: median(one.rows_s[name] for one in seen) for name, seen in alone.items()}
    busy = {name: median(one.busy for one in seen) for name, seen in alone.items()}
    pairs: dict[str, dict[str, Any]] = {}
    for (kind, names), seen in samples.items():
        if kind == "alone":
            continue
        together = {name: median(one.rows_s[name] for one in seen) for name in names}
        pair = pairs.setdefault(" + ".join(names), {"busy_alone": all(busy[n] >= LEAST_BUSY for n in names)})
        pair[kind] = {
            "rows_s": {name: round(rate, 1) for name, rate in together.items()},
            "total_rows_s": round(sum(together.values()), 1),
            "busy": round(median(one.busy for one in seen), 3),
            "sum_of_ratios": round(sum(together[name] / rates[name] for name in names), 3),
        }
    for pair in pairs.values():
        pair["holds"] = pair["busy_alone"] and all(
            kind in pair and pair[kind]["sum_of_ratios"] >= least for kind, least in LEAST_SUM.items()
        )
    return {
        "rows_a_tile": dict(rows),
        "slots": SLOTS,
        "alone": {name: {"rows_s": round(rates[name], 1), "busy": round(busy[name], 3)} for name in rates},
        "pairs": pairs,
        "article": article.TOGETHER,
        "faults": _faults(pairs),
    }


def _faults(pairs: Mapping[str, Mapping[str, Any]]) -> list[str]:
    if any(pair["holds"] for pair in pairs.values()):
        return []
    tried = "; ".join(
        f"{name}: {'' if pair['busy_alone'] else 'idle alone, '}"
        + ", ".join(f"{kind} {pair[kind]['sum_of_ratios']}" for kind in LEAST_SUM if kind in pair)
        for name, pair in pairs.items()
    )
    bounds = ", ".join(f"{kind} {least}" for kind, least in LEAST_SUM.items())
    return [f"together: no pair that is {LEAST_BUSY} busy alone reaches {bounds}; tried: {tried or 'none'}"]
