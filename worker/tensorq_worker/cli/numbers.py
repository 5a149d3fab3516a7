"""Numbers on the command line: lists, and lists by name; all callbacks for click's options."""

from __future__ import annotations

from collections.abc import Sequence

import click

_MOST_MIB = 10**12


def whole_numbers(ctx: click.Context, param: click.Parameter, value: str) -> tuple[int, ...]:
    """Returns ``4,8,16`` in ascending order, each number once.

    Raises:
        click.BadParameter: these are not whole numbers from 1.
    """
    return tuple(sorted(set(_numbers(value, ","))))


def mebibytes(ctx: click.Context, param: click.Parameter, value: float | None) -> float | None:
    """Returns a size, if it is one.

    Raises:
        click.BadParameter: it is negative, not finite, or more memory than there is.
    """
    # Not click's range, which takes nan.
    if value is not None and not 0 <= value <= _MOST_MIB:
        raise click.BadParameter(f"got {value:g}, expected MiB from 0 to {_MOST_MIB}")
    return value


def named_lengths(
    ctx: click.Context, param: click.Parameter, values: Sequence[str]
) -> dict[str, tuple[int, ...]]:
    """Returns each ``NAME=320,640`` by its name.

    Raises:
        click.BadParameter: one has another form.
    """
    return {name: tuple(sorted(set(_numbers(text, ",")))) for name, text in map(_named, values)}


def named_shapes(
    ctx: click.Context, param: click.Parameter, values: Sequence[str]
) -> dict[str, tuple[tuple[int, ...], ...]]:
    """Returns each ``NAME=3x48x320,3x48x640`` by its name.

    Raises:
        click.BadParameter: one has another form.
    """
    return {
        name: tuple(dict.fromkeys(_numbers(part, "x") for part in text.split(",")))
        for name, text in map(_named, values)
    }


def _named(value: str) -> tuple[str, str]:
    # A name may hold a =, but values cannot.
    name, equals, text = value.rpartition("=")
    if not (equals and name):
        raise click.BadParameter(f"got {value!r}, expected NAME=VALUES")
    return name, text


def _numbers(text: str, separator: str) -> tuple[int, ...]:
    parts = [part.strip() for part in text.split(separator)]
    if not all(part.isascii() and part.isdigit() and int(part) > 0 for part in parts):
        raise click.BadParameter(
            f"got {text!r}, expected whole numbers from 1, as in {separator.join('248')}"
        )
    return tuple(map(int, parts))
