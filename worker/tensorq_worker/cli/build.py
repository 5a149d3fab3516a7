"""``tensorq build`` and ``tensorq calibrate``."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from tensorq_engines import ModelLoadFailed, Repository, derive_ladder
from tensorq_worker.cli.command import EX_FAILED, Command

if TYPE_CHECKING:
    from tensorq_engines import ModelEntry
    from tensorq_engines.tensorrt.builder.calibration.quantize import Method
    from tensorq_engines.tensorrt.plan import PlanFile

MIB = 1 << 20

model_argument = click.argument("model", metavar="DIR/MODEL", type=click.Path(path_type=Path))
verbose_option = click.option("-v", "--verbose", is_flag=True, help="Log more, with TensorRT's own words.")


@click.command(cls=Command)
@model_argument
@click.option(
    "--flavour",
    "name",
    type=click.Choice(["tensorrt", "tensorrt_rtx"]),
    help="The TensorRT to build with, where two are installed.",
)
@click.option("--force", is_flag=True, help="Build even if there is a plan.")
@verbose_option
@click.pass_context
def build(ctx: click.Context, model: Path, name: str | None, force: bool, verbose: bool) -> None:
    """Build the TensorRT plan of a model, or say where it is."""
    from tensorq_engines.tensorrt import flavour as flavours
    from tensorq_engines.tensorrt.builder import find, find_or_build
    from tensorq_engines.tensorrt.cuda.device import Device

    _log(verbose)
    with _refusals(ctx):
        entry = _entry(model)
        flavour = flavours.find(name)
        device = Device.probe()
        began = time.perf_counter()
        found = None if force else find(entry, flavour, device)
        plan = found or find_or_build(entry, flavour, device, force=force)
        seconds = time.perf_counter() - began
    where = "no GPU" if device is None else device.name
    click.echo(f"{entry.name}: {flavour.name} {flavour.version_text}, {where}, {entry.settings.precision}")
    _describe(plan)
    click.echo(f"  {'found' if found else 'built'}    in {seconds:.1f} s")


@click.command(cls=Command)
@model_argument
@click.argument("files", nargs=-1, required=True, type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--method",
    type=click.Choice(["minmax", "entropy", "percentile"]),
    default="minmax",
    show_default=True,
    help="How a range is chosen from the values seen.",
)
@verbose_option
@click.pass_context
def calibrate(ctx: click.Context, model: Path, files: tuple[Path, ...], method: str, verbose: bool) -> None:
    """Quantize a model to int8 by the rows in FILES (.npz, one array an input)."""
    from tensorq_engines.tensorrt.builder.calibration.calibrate import calibrate as run
    from tensorq_engines.tensorrt.builder.calibration.result import graph_path

    _log(verbose)
    with _refusals(ctx):
        entry = _entry(model)
        made = run(entry, files, cast("Method", method))
    click.echo(f"{entry.name}: {made.rows} rows seen, {graph_path(entry)} written")
    if entry.settings.precision != "int8":
        click.echo("model.toml does not ask for it yet: write precision = 'int8'")


@contextmanager
def _refusals(ctx: click.Context) -> Iterator[None]:
    """Ends the command with a model's refusal as it stands: a line for each node, settings to copy."""
    try:
        yield
    except ModelLoadFailed as exc:
        click.echo(f"{ctx.command_path}: {exc}", err=True)
        ctx.exit(EX_FAILED)


def _entry(model: Path) -> ModelEntry:
    folder = model.resolve()
    return Repository(folder.parent).get(folder.name)


def _describe(plan: PlanFile) -> None:
    sidecar = plan.sidecar
    if sidecar is None:
        return
    ladder = derive_ladder([item for item in sidecar.profiles if item.ranges], sidecar.signature)
    click.echo(f"  ladder   {', '.join(map(str, ladder))}")
    needs = zip(sidecar.profiles, sidecar.activation_bytes, sidecar.io_bytes, strict=True)
    for profile, activation, io in needs:
        ranges = (
            f"{item.name} min {list(item.min)} opt {list(item.opt)} max {list(item.max)}" for item in profile
        )
        text = ", ".join(ranges) or "fixed shapes"
        click.echo(f"  profile  {text}: activations {activation / MIB:.1f} MiB, I/O {io / MIB:.1f} MiB")
    size = plan.path.stat().st_size
    click.echo(f"  weights  {sidecar.weights_bytes / MIB:.1f} MiB")
    click.echo(f"  plan     {plan.path}, {size / MIB:.1f} MiB")


def _log(verbose: bool) -> None:
    logging.basicConfig(level=logging.DEBUG if verbose else logging.INFO, format="%(message)s")
