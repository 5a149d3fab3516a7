"""``tensorq``: the command line's root."""

from __future__ import annotations

import click

from tensorq_worker.cli.build import build, calibrate
from tensorq_worker.cli.models import models
from tensorq_worker.cli.plan import plan
from tensorq_worker.cli.result import result
from tensorq_worker.cli.submit import submit
from tensorq_worker.cli.worker import worker


@click.group("tensorq", context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="tensorq")
def main() -> None:
    """Batched inference on an RQ queue."""


for command in (worker, submit, result, models, build, calibrate, plan):
    main.add_command(command)
