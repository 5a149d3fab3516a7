"""``tensorq result``."""

from __future__ import annotations

from pathlib import Path

import click

from tensorq.errors import ConfigError, ResultTimeout
from tensorq.options import checked_job_id
from tensorq_worker.cli.command import Command
from tensorq_worker.cli.options import connect, out_option, redis_option
from tensorq_worker.cli.results import Results


def _checked(ctx: click.Context, param: click.Parameter, job_ids: tuple[str, ...]) -> tuple[str, ...]:
    try:
        return tuple(dict.fromkeys(map(checked_job_id, job_ids)))
    except ConfigError as exc:
        raise click.BadParameter(str(exc)) from exc


@click.command(cls=Command)
@click.argument("job_ids", nargs=-1, required=True, metavar="JOB_ID...", callback=_checked)
@redis_option
@out_option
@click.option("--timeout", type=click.FloatRange(0), help="Seconds to wait for all; default for ever.")
@click.pass_context
def result(
    ctx: click.Context, job_ids: tuple[str, ...], redis_url: str | None, out: Path, timeout: float | None
) -> None:
    """Wait for jobs, and write their results as OUT/JOB_ID.npz.

    The exit code is 0 only if all of them succeeded.
    """
    left = dict.fromkeys(job_ids)
    with connect(redis_url) as client:
        results = Results(out)
        try:
            for job in client.as_completed(job_ids, timeout):
                del left[job.id]
                results.take(job, job.id)
        except ResultTimeout:
            for job_id in left:
                results.fail(f"job {job_id} has not ended within {timeout:g} s; ask again later")
    ctx.exit(results.report())
