"""Text for people: signatures and tables. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from tensorq.signature import Signature


def describe(signature: Signature | None) -> str:
    """Returns a signature as ``x: float32[N, 3] -> y: float32[N]``."""
    if signature is None:
        return "unknown"
    inputs, outputs = (", ".join(map(str, specs)) for specs in (signature.inputs, signature.outputs))
    return f"{inputs} -> {outputs}"


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Returns columns, aligned to the left and two spaces apart."""
    columns = list(zip(heads, *rows, strict=True))
    widths = [max(map(len, column)) for column in columns]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in (heads, *rows)
    )
