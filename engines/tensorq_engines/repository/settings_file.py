"""Reading a model.toml."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from tensorq_engines.base.errors import RepositoryError
from tensorq_engines.base.problem import Problem
from tensorq_engines.repository.settings import ModelSettings
from tensorq_engines.repository.translate import settings_problems


def read_settings(file: Path) -> ModelSettings:
    """Reads and validates one file.

    Raises:
        RepositoryError: it cannot be read, is not TOML, or holds keys or values that are refused.
    """
    settings, problems = examine_settings(file)
    if problems:
        raise RepositoryError(problems)
    return settings


def examine_settings(file: Path) -> tuple[ModelSettings, list[Problem]]:
    """Reads one file and tells all that is wrong with it.

    Returns:
        The settings, with defaults for the top-level keys that are wrong, or for all where the file cannot
        be read; and the problems.
    """
    try:
        table = tomllib.loads(file.read_bytes().decode("utf-8"))
    except OSError as exc:
        problem = Problem(str(file), "", f"cannot be read: {exc.strerror or exc}", "make it a readable file")
    except UnicodeDecodeError as exc:
        line = exc.object[: exc.start].count(b"\n") + 1
        problem = Problem(str(file), f"line {line}", "is not text in UTF-8", "save it as UTF-8")
    except tomllib.TOMLDecodeError as exc:
        problem = _syntax_problem(file, str(exc))
    except (ValueError, RecursionError) as exc:  # tomllib lets them through: a number or a nest too large
        problem = Problem(
            str(file), "", f"cannot be read: {exc}", "write shorter numbers, and fewer brackets"
        )
    else:
        return _validate(table, file)
    return ModelSettings(), [problem]


def _validate(table: dict[str, Any], file: Path) -> tuple[ModelSettings, list[Problem]]:
    try:
        return ModelSettings.model_validate(table), []
    except ValidationError as exc:
        wrong = {detail["loc"][0] for detail in exc.errors(include_url=False)}
        kept = {key: value for key, value in table.items() if key not in wrong}
        return ModelSettings.model_validate(kept), settings_problems(exc, str(file))


def _syntax_problem(file: Path, words: str) -> Problem:
    place = re.search(r" \(at (?:line (\d+), column \d+|end of document)\)$", words)
    key = "" if place is None else f"line {place[1]}" if place[1] else "end of file"
    message = words if place is None else words[: place.start()]
    return Problem(str(file), key, f"is not TOML: {message}", "correct the syntax there")
