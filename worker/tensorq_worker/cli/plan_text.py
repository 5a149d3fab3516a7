"""What ``tensorq plan`` prints. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from tensorq_engines import Footprint
from tensorq_engines.residency.account import charge
from tensorq_engines.sizing.accuracy import known_accuracy
from tensorq_engines.sizing.model import Size, SizedModel
from tensorq_engines.sizing.together import Together
from tensorq_worker.cli.text import table

MIB = 1 << 20
OWN = "own"
"""What the set is called in which each model has its own largest tile."""

HOST_ENGINES = ("onnxruntime", "reference")


def model_text(model: SizedModel, lanes: Sequence[int], slots: int) -> str:
    """Returns the table of one model: a line for each largest tile, a column for each number of lanes."""
    heads = ["MAX TILE", "BASIS", "WEIGHTS", "ACTIVATIONS", "I/O", "CONTEXTS"]
    heads += [f"{count} LANE{'S' * (count > 1)}" for count in lanes] + ["PINNED A LANE"]
    rows = [_size_row(size, lanes, slots) for size in model.sizes]
    words = [model.precision, f"plan of {model.plan}" if model.plan else "no plan yet"]
    if model.engine in HOST_ENGINES:
        words.append(f"but model.toml asks for {model.engine}, which takes no device memory")
    return f"{model.name}: {', '.join(words)}\n{table(heads, rows)}"


def _size_row(size: Size, lanes: Sequence[int], slots: int) -> list[str]:
    shapes = " ".join(f"{name} {'x'.join(map(str, shape))}" for name, shape in size.shapes.items())
    one = size.footprint
    totals = [charge([one], count, shared=True, slots=slots).total_bytes for count in lanes]
    parts = (one.weights_bytes, one.arena_bytes, one.io_bytes, one.context_bytes, *totals)
    return [
        f"{shapes}{' *' if size.own else ''}",
        size.basis,
        *map(_mib, parts),
        _mib(slots * one.pinned_bytes),
    ]


def sets_text(sets: Sequence[Together], budget_mib: float | None) -> str:
    """Returns the table of all models at once, and a line for each case in which the budget is too small."""
    inside = [] if budget_mib is None else [f"IN {budget_mib:g}"]
    heads = ["ALL, MAX ROWS", "LANES", "WEIGHTS", "CONTEXTS", "I/O", "ARENA", "TOTAL", *inside]
    heads += ["PRIVATE", "TOTAL", *inside, "PINNED"]
    rows = []
    for one in sets:
        account = one.shared.account
        parts = (account.weights_bytes, account.contexts_bytes, account.io_bytes)
        row = [str(one.rows or OWN), str(one.lanes), *map(_mib, parts)]
        for made in (one.shared, one.private):
            row += [_mib(made.account.arenas_bytes), _mib(made.account.total_bytes)]
            row += [f"{len(made.held)} of {len(made.held) + len(made.left)}"] if inside else []
        rows.append([*row, _mib(account.pinned_bytes)])
    return "\n".join([table(heads, rows), *_shortages(sets)])


def _shortages(sets: Sequence[Together]) -> Iterator[str]:
    for one in sets:
        for word, made in (("one arena", one.shared), ("private", one.private)):
            if not made.left:
                continue
            where = (
                f"{OWN if one.rows is None else one.rows}, {one.lanes} lane{'s' * (one.lanes > 1)}, {word}"
            )
            parts = [f"in order, {', '.join(made.held) or 'none'} fit and {', '.join(made.left)} not"]
            if made.evicted:
                parts.append(f"taking turns, at least {made.evicted} must be evicted")
            if made.never:
                parts.append(f"{', '.join(made.never)} not even alone")
            yield f"{where}: {'; '.join(parts)}"


def notes(models: Iterable[SizedModel]) -> str:
    """Returns what the words of the tables mean, and how far estimates were off."""
    lines = [
        "MiB of device memory; PINNED is page-locked host memory. A lane has contexts, I/O and activations",
        "of its own. Its models share I/O and one ARENA of the largest need; PRIVATE: each has activations",
        "of its own. * the largest tile of the model's own profiles.",
    ]
    bases = {size.basis for model in models for size in model.sizes}
    if "built" in bases:
        lines.append("built: what the plan itself told.")
    if "at least" in bases:
        lines.append("at least: an estimate in which tensors whose shapes onnx cannot tell count as nothing.")
    if bases - {"built"}:
        lines.append("estimate: from the graph; so far it was off like this:")
        lines += [f"  {accuracy}" for accuracy in known_accuracy()]
    return "\n".join(lines)


def _mib(size: int) -> str:
    return f"{size / MIB:.1f}"


def plain(
    models: Sequence[SizedModel],
    sets: Sequence[Together],
    lanes: Sequence[int],
    slots: int,
    budget_bytes: int | None,
) -> dict[str, Any]:
    """Returns all of it in bytes, as JSON can hold it."""
    return {
        "models": [
            {
                "name": model.name,
                "precision": model.precision,
                "plan": model.plan,
                "sizes": [_plain_size(size, lanes, slots) for size in model.sizes],
            }
            for model in models
        ],
        "budget_bytes": budget_bytes,
        "sets": [_plain_set(one) for one in sets],
        "estimates": [asdict(accuracy) for accuracy in known_accuracy()],
    }


def _plain_size(size: Size, lanes: Sequence[int], slots: int) -> dict[str, Any]:
    return {
        "max": size.shapes,
        "own": size.own,
        "basis": size.basis,
        **asdict(size.footprint),
        "lanes": {str(count): _charged([size.footprint], count, slots) for count in lanes},
    }


def _charged(footprints: Sequence[Footprint], lanes: int, slots: int) -> Mapping[str, int]:
    account = charge(footprints, lanes, shared=True, slots=slots)
    return {"total_bytes": account.total_bytes, "pinned_bytes": account.pinned_bytes}


def _plain_set(one: Together) -> dict[str, Any]:
    modes = {"shared": one.shared, "private": one.private}
    return {
        "rows": one.rows,
        "lanes": one.lanes,
        **{
            word: {
                **asdict(made.account),
                "total_bytes": made.account.total_bytes,
                "held": made.held,
                "left": made.left,
                "never": made.never,
                "evicted": made.evicted,
            }
            for word, made in modes.items()
        },
    }
