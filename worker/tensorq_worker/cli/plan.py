"""``tensorq plan``."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import click

from tensorq.errors import ConfigError
from tensorq_engines import ModelEntry, Repository
from tensorq_engines.sizing.maxima import DEFAULT_BATCHES, Wanted
from tensorq_engines.sizing.model import open_model, size_model
from tensorq_engines.sizing.together import put_together
from tensorq_worker.cli.command import Command
from tensorq_worker.cli.numbers import mebibytes, named_lengths, named_shapes, whole_numbers
from tensorq_worker.cli.plan_text import MIB, model_text, notes, plain, sets_text


@click.command(cls=Command)
@click.argument("models", metavar="MODEL...", nargs=-1)
@click.option(
    "--models",
    "folder",
    envvar="TENSORQ_MODELS",
    type=click.Path(path_type=Path),
    help="The repository of models that are given by name; without a MODEL, all of it. Also TENSORQ_MODELS.",
)
@click.option(
    "--max-batch",
    "batches",
    metavar="N,N,...",
    callback=whole_numbers,
    default=",".join(map(str, DEFAULT_BATCHES)),
    show_default=True,
    help="Maximum rows of a tile.",
)
@click.option(
    "--free",
    metavar="NAME=N,...",
    callback=named_lengths,
    multiple=True,
    help="Lengths of a free axis: W=320,640.",
)
@click.option(
    "--input",
    "inputs",
    metavar="NAME=AxB,...",
    callback=named_shapes,
    multiple=True,
    help="Shapes of an input's rows: x=3x48x320,3x48x640.",
)
@click.option(
    "--lanes",
    metavar="N,N,...",
    callback=whole_numbers,
    default="1,2",
    show_default=True,
    help="Numbers of lanes.",
)
@click.option("--slots", type=click.IntRange(min=1), default=2, show_default=True, help="Slots of a lane.")
@click.option("--budget", "budget_mib", type=float, callback=mebibytes, help="MiB of device memory.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, in bytes.")
def plan(
    models: tuple[str, ...],
    folder: Path | None,
    batches: tuple[int, ...],
    free: dict[str, tuple[int, ...]],
    inputs: dict[str, tuple[tuple[int, ...], ...]],
    lanes: tuple[int, ...],
    slots: int,
    budget_mib: float | None,
    as_json: bool,
) -> None:
    """Say what device memory MODELs would need with TensorRT, before anything is built or loaded.

    A MODEL is the path of a model's folder, or with --models a name. Neither TensorRT nor a GPU is needed.
    """
    subjects = [open_model(entry) for entry in _entries(models, folder)]
    wanted = Wanted(batches, free, inputs)
    wanted.expect_known([subject.signature for subject in subjects])
    sized = [size_model(subject, wanted) for subject in subjects]
    budget_bytes = None if budget_mib is None else int(budget_mib * MIB)
    sets = put_together(sized, batches, lanes, slots, budget_bytes)
    if as_json:
        click.echo(json.dumps(plain(sized, sets, lanes, slots, budget_bytes), indent=2))
        return
    for model in sized:
        click.echo(model_text(model, lanes, slots) + "\n")
    if len(sized) > 1 or budget_bytes is not None:
        click.echo(sets_text(sets, budget_mib) + "\n")
    click.echo(notes(sized))


def _entries(models: Sequence[str], folder: Path | None) -> list[ModelEntry]:
    names = list(models)
    if not names:
        if folder is None:
            raise click.UsageError("name a MODEL, or a repository with --models DIR")
        names = list(Repository(folder).names)
    entries = []
    for name in names:
        path = Path(name).resolve() if folder is None or "/" in name else folder / name
        entries.append(Repository(path.parent).get(path.name))
    twice = sorted({entry.name for entry in entries if [one.name for one in entries].count(entry.name) > 1})
    if twice:
        raise ConfigError(f"got model {', '.join(map(repr, twice))} twice, expected each name once")
    return entries
