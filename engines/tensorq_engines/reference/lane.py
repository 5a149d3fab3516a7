"""A lane for the numpy reference."""

from __future__ import annotations

from typing import ClassVar

from tensorq_engines.base.threaded_lane import ThreadedLane


class ReferenceLane(ThreadedLane):
    """Runs the evaluator on one thread."""

    kind: ClassVar[str] = "reference"
