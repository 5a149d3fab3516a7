"""``tensorq models check``."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import click

from tensorq_engines import ModelEntry, ModelLoadFailed, Problem, Repository, check_buckets, create_engine
from tensorq_worker.cli.command import Command
from tensorq_worker.cli.text import describe
from tensorq_worker.errors import one_line


@click.command(cls=Command)
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path), envvar="TENSORQ_MODELS")
@click.pass_context
def check(ctx: click.Context, folder: Path) -> None:
    """Say what is wrong with a model repository, all at once, and what its models are."""
    repository = Repository(folder)
    problems = repository.check()
    bad = {Path(problem.file) for problem in problems}
    for problem in problems:
        click.echo(one_line(problem))
    if folder not in bad:
        for name in repository.names:
            root = folder / name
            if not any(file.is_relative_to(root) for file in bad):
                click.echo("\n".join(_lines(repository.get(name), problems)))
    if problems:
        click.echo(f"{ctx.command_path}: problems: {len(problems)}", err=True)
        ctx.exit(os.EX_DATAERR)


def _lines(entry: ModelEntry, problems: list[Problem]) -> Iterator[str]:
    yield entry.name
    yield f"  source     {entry.source.name}"
    try:
        engine = create_engine(entry)
        yield f"  engine     {engine.kind}"
        yield f"  ladder     {', '.join(map(str, engine.ladder))}"
        yield f"  signature  {describe(engine.signature)}"
        # What a plan takes is known only here, not to the repository, which opens none.
        file = str(entry.folder / "model.toml")
        found = check_buckets(entry.settings.bucketed, engine.signature, engine.profiles, file)
        problems += found
        yield from map(one_line, found)
    except ModelLoadFailed as exc:
        # Not the repository's fault: it may be meant for another machine.
        yield f"  engine     {entry.settings.engine}, not here: {one_line(exc)}"
