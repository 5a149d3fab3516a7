"""Names of models, priorities and queues.

A model has three RQ queues, ``MODEL@high``, ``MODEL`` and ``MODEL@low``, which RQ's own tools show as they
are. A model name never holds an ``@``, a slash, a colon or a control character, so it can leave neither
the key space nor the model repository.
"""

from __future__ import annotations

import re
from enum import StrEnum

from tensorq.errors import UnknownModel

MODEL_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


class Priority(StrEnum):
    """Which of a model's three queues a job waits on."""

    HIGH = "high"
    NORMAL = "normal"
    LOW = "low"


def validate_model_name(name: str) -> str:
    """Returns ``name`` if it is a model name.

    Raises:
        UnknownModel: it is not; the message says what a name looks like.
    """
    if not isinstance(name, str) or not MODEL_NAME.fullmatch(name):
        raise UnknownModel(
            f"{name!r} is not a model name: expected 1 to 128 of letters, digits, '.', '_' and '-', "
            "starting with a letter or digit"
        )
    return name


def queue_name(model: str, priority: Priority | str = Priority.NORMAL) -> str:
    """Returns the RQ queue on which jobs of ``model`` with ``priority`` wait."""
    priority = Priority(priority)
    return model if priority is Priority.NORMAL else f"{model}@{priority.value}"


def model_queues(model: str) -> tuple[str, str, str]:
    """Returns the model's queues, highest priority first."""
    return f"{model}@high", model, f"{model}@low"


def parse_queue(queue: str) -> tuple[str, Priority]:
    """Splits a queue name into model and priority.

    Raises:
        UnknownModel: the queue is not one that tensorq uses.
    """
    model, at, level = queue.partition("@")
    validate_model_name(model)
    if not at:
        return model, Priority.NORMAL
    if level not in (Priority.HIGH, Priority.LOW):
        raise UnknownModel(f"{queue!r} is not a tensorq queue: expected MODEL, MODEL@high or MODEL@low")
    return model, Priority(level)
