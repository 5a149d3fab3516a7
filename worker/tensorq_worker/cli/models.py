"""``tensorq models``."""

from __future__ import annotations

import click

from tensorq_worker.cli.models_check import check
from tensorq_worker.cli.models_list import list_models


@click.group()
def models() -> None:
    """Look at models."""


models.add_command(check)
models.add_command(list_models)
