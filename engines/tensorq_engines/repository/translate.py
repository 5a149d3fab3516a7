"""pydantic's errors as problems with a key and a remedy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel, ValidationError

from tensorq_engines.base.problem import Problem, suggest
from tensorq_engines.repository.settings import (
    BucketSettings,
    CropSettings,
    InputSettings,
    ModelSettings,
    RangeSettings,
)

Location = Sequence[int | str]


def settings_problems(error: ValidationError, file: str) -> list[Problem]:
    """Returns one problem for each key that pydantic refused, in the file's order."""
    problems = [_problem(detail, file) for detail in error.errors(include_url=False)]
    return list(dict.fromkeys(problems))


def _problem(detail: Any, file: str) -> Problem:
    location = detail["loc"]
    owner, field = _place(location)
    key = _key(location)
    if detail["type"] == "extra_forbidden":
        return Problem(file, key, "unknown key", suggest(str(location[-1]), owner.model_fields))
    description = owner.model_fields[field].description if field in owner.model_fields else None
    expected = description or "a table INPUT = { min = [...], opt = [...], max = [...] }"
    if detail["type"] == "missing":
        return Problem(file, key, "is missing", f"give {expected}")
    return Problem(file, key, f"got {detail['input']!r}, expected {expected}", f"correct or remove {key}")


def _place(location: Location) -> tuple[type[BaseModel], str]:
    """Returns the table that a location lies in, and the field of it."""
    head = str(location[0])
    if head == "profile":
        if len(location) < 3:
            return ModelSettings, "profile"
        return RangeSettings, str(location[3]) if len(location) > 3 else ""
    if head == "inputs" and len(location) > 2:
        return InputSettings, str(location[2])
    if head == "buckets" and len(location) > 2:
        if location[2] == "crop" and len(location) > 4:
            return CropSettings, str(location[4])
        return BucketSettings, str(location[2])
    table = ModelSettings.model_fields[head].annotation if head in ModelSettings.model_fields else None
    if len(location) > 1 and isinstance(table, type) and issubclass(table, BaseModel):
        return table, str(location[1])
    return ModelSettings, head


def _key(location: Location) -> str:
    key = ""
    for part in location:
        key += f"[{part}]" if isinstance(part, int) else f".{part}" if key else part
    return key
