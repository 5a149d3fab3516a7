"""Ladder: the ascending batch sizes worth running. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from tensorq.signature import Signature
from tensorq_engines.base.profile import Profile

DEFAULT_LADDER = (1, 8, 32)


def derive_ladder(profiles: Sequence[Profile], signature: Signature) -> tuple[int, ...]:
    """Returns the batch sizes to run a model with, ascending, each once.

    Args:
        profiles: profiles that fit ``signature``; their min, opt and max rows are the ladder.
        signature: a model without a batch axis has the ladder ``(1,)``, and one of a fixed number of rows
            only that number; else the ladder without profiles is ``(1, 8, 32)``.
    """
    if signature.batch_axis is None:
        return (1,)
    if signature.fixed_rows is not None:
        return (signature.fixed_rows,)
    if not profiles:
        return DEFAULT_LADDER
    return tuple(sorted({rows for profile in profiles for rows in profile.rows()}))
