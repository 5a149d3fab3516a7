"""``tensorq submit``."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, cast

import click

from tensorq import Client, Job, ModelInfo
from tensorq.errors import ConfigError, TensorqError
from tensorq.names import validate_model_name
from tensorq.options import SubmitOptions, job_options
from tensorq_worker.cli.command import Command
from tensorq_worker.cli.inputs import JobFiles, find_jobs
from tensorq_worker.cli.options import connect, out_option, redis_option
from tensorq_worker.cli.pump import Pump
from tensorq_worker.cli.results import Results, result_path


def _duration(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """Returns what was given, if the SDK would take it."""
    try:
        job_options({str(param.name): value})
    except ConfigError as exc:
        raise click.BadParameter(str(exc)) from exc
    return value


@click.command(cls=Command)
@click.argument("model")
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@redis_option
@out_option
@click.option(
    "--timeout", callback=_duration, help="Limit of a job's running part, such as 90 or 2h; -1: none."
)
@click.option("--priority", type=click.Choice(["high", "normal", "low"]), help="Which queue jobs wait on.")
@click.option("--ttl", callback=_duration, help="How long a job may wait before it is dropped.")
@click.option("--result-ttl", callback=_duration, help="How long Redis keeps a result.")
@click.option("--cast", is_flag=True, help="Convert dtypes where every value survives it.")
@click.option("--no-wait", is_flag=True, help="Print the jobs' ids and do not wait for results.")
@click.pass_context
def submit(
    ctx: click.Context,
    /,
    model: str,
    files: tuple[str, ...],
    redis_url: str | None,
    out: Path,
    no_wait: bool,
    **options: Any,
) -> None:
    """Submit FILEs to MODEL, and write the results.

    \b
    NAME=FILE.npy ...    one job, an array for each input
    NAME=GLOB ...        a job for each file; files of several inputs go by their names
    FILE.npz ...         a job for each; its arrays are named as the inputs
    FILE.npy ...         a job for each, where the model has one input

    A result is called as its file. While the queue is full, this waits. The exit code is 0 only if all
    jobs succeeded.
    """  # noqa: D301
    validate_model_name(model)
    given = cast(SubmitOptions, {name: value for name, value in options.items() if value is not None})
    unserved = f"{ctx.command_path}: no worker serves {model!r} now; waiting for one"

    def stored(job: Job) -> None:
        nonlocal unserved
        if no_wait:
            click.echo(job.id)
        elif info is None and unserved:
            click.echo(unserved, err=True)
            unserved = ""

    with connect(redis_url) as client:
        info = _published(client, model)
        jobs = find_jobs(files, lambda: _only_input(model, info))
        if not no_wait:
            _expect_inputs_are_kept(jobs, out)
        results = Results(out)
        try:
            with _progress(jobs) as bar:
                tick = (lambda: None) if bar is None else (lambda: bar.update(1))
                Pump(client, model, given, results, stored, not no_wait, tick).run(jobs)
        except (TensorqError, OSError):
            results.report()
            raise
    ctx.exit(results.report())


def _published(client: Client, model: str) -> ModelInfo | None:
    return next((info for info in client.models() if info.name == model), None)


def _only_input(model: str, info: ModelInfo | None) -> str:
    if info is None or info.signature is None:
        raise click.UsageError(
            f"the inputs of {model!r} are not known, as no worker serves it now: give NAME=FILE.npy"
        )
    names = [spec.name for spec in info.signature.inputs]
    if len(names) != 1:
        raise click.UsageError(f"model {model!r} has inputs {', '.join(names)}: give NAME=FILE.npy for each")
    return names[0]


def _expect_inputs_are_kept(jobs: Sequence[JobFiles], out: Path) -> None:
    """Refuses results that would take the place of inputs, whatever the paths are called."""
    inputs = {_identity(path): path for job in jobs for _, path in job.files if path.exists()}
    for job in jobs:
        result = result_path(out, job.name)
        # Without a name it is called by the job's id, which no file has.
        if job.name and result.exists() and (taken := inputs.get(_identity(result))):
            raise click.UsageError(
                f"the result of {job} would overwrite the input {taken}; write results elsewhere, with -o DIR"
            )


def _identity(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_dev, found.st_ino


def _progress(jobs: Sequence[object]) -> Any:
    if len(jobs) == 1 or not sys.stderr.isatty():
        return nullcontext()
    return click.progressbar(length=len(jobs), file=sys.stderr)
