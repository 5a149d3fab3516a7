"""Wait: whether rows run now or wait for more. Pure."""

from __future__ import annotations

from tensorq_worker.planner.tiling import Tiling

LOOK_AGAIN_MS = 0.25
"""The least wait before the rate is looked at again: it falls while nothing comes."""


def wait_ms(
    rows: int, tiling: Tiling, age_ms: float, max_delay_ms: float, rows_per_ms: float | None
) -> float:
    """Returns how long to wait for more rows before deciding again, in ms; 0 means run now.

    A full largest tile runs now, and so does what has waited its time. Otherwise waiting pays where, at the
    rate seen, as many rows come in the time left as make a row cheaper than it is now.

    Args:
        rows: rows waiting, at least 1.
        tiling: of the stage.
        age_ms: since the oldest job was submitted.
        max_delay_ms: the most that it may wait for company.
        rows_per_ms: at which more come; None where that is not known, and then all the time left is waited.
    """
    left_ms = max_delay_ms - age_ms
    if rows >= tiling.largest or left_ms <= 0:
        return 0.0
    if rows_per_ms is None:
        return left_ms
    wanted = tiling.paying_rows(rows)
    if wanted is None or wanted - rows > rows_per_ms * left_ms:
        return 0.0
    return min(left_ms, max(LOOK_AGAIN_MS, (wanted - rows) / rows_per_ms))
