"""Settings of a worker: command line, then ``TENSORQ_*``, then a TOML file, then the defaults here."""

from __future__ import annotations

import math
import os
import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails, PydanticCustomError

from tensorq.errors import ConfigError


def _no_bool(value: Any) -> Any:
    """TOML's true is no number, though Python's is; text, of variables, is for pydantic to read."""
    if isinstance(value, bool):
        raise PydanticCustomError("number_type", "Input should be a number")
    return value


_Int = Annotated[int, BeforeValidator(_no_bool)]
_Float = Annotated[float, BeforeValidator(_no_bool)]


class WorkerConfig(BaseModel):
    """Settings of one worker process.

    Attributes:
        models: the model repository's folder.
        lease_s: how long a claimed job is kept from others without a beat.
        beat_s: seconds between beats, at most half a lease: one that lapses under a living worker has its
            job run elsewhere, and counts it as a suspect.
        aging_s: by how much waiting a lower priority makes up for one level.
        max_claim_mib: payloads of one claim.
        prefetch_tiles: largest tiles' worth of rows to stage ahead, a model.
        lanes: streams that run tiles at once, to 64: each has threads, slots and a connection to
            Redis.
        slots: staging areas a lane, to 64: each is host memory for the largest tile.
        threads: threads of the engine for one tile on a CPU; 0 lets it choose. To 256: all are
            started for each model, which took two cores 20 s for 1,024.
        crash_cap: crashes while alone after which a job is failed as poison.
        allow_functions: run function jobs that are not tensorq's, which unpickles what is in Redis.
        load: when models are loaded whose model.toml does not say: ``eager`` at the start, or the worker
            ends; ``lazy`` at first use, for good; ``lru`` at first use, and evicted for others; ``auto`` is
            lru, and at the start already what there is room for.
        budget_mib: device memory that loaded models may take; None for nine tenths of what is free at start.
        pinned_mib: page-locked host memory that slots may take; None for no limit.
        health_file: a file that says how the worker does; one a worker.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    models: Path
    lease_s: _Int = Field(90, ge=3)
    beat_s: _Float = Field(15.0, gt=0, allow_inf_nan=False)
    aging_s: _Float = Field(60.0, ge=0, allow_inf_nan=False)
    max_claim_mib: _Int = Field(64, ge=1)
    prefetch_tiles: _Int = Field(2, ge=1)
    lanes: _Int = Field(1, ge=1, le=64)
    slots: _Int = Field(2, ge=2, le=64)
    threads: _Int = Field(0, ge=0, le=256)
    crash_cap: _Int = Field(3, ge=1)
    allow_functions: bool = False
    load: Literal["auto", "eager", "lazy", "lru"] = "auto"
    budget_mib: _Int | None = Field(None, ge=1)
    pinned_mib: _Int | None = Field(None, ge=1)
    health_file: Path | None = None


def load_config(
    options: Mapping[str, Any], environment: Mapping[str, str] | None = None, file: Path | None = None
) -> WorkerConfig:
    """Puts the settings together.

    Args:
        options: from the command line; None entries were not given.
        environment: where ``TENSORQ_MODELS``, ``TENSORQ_LEASE_S`` and so on are; None for the process's.
        file: a TOML file of the same names; None for ``TENSORQ_CONFIG``, if set.

    Raises:
        ConfigError: names every malformed value, where it came from, and what it must be.
    """
    environment = os.environ if environment is None else environment
    merged: dict[str, Any] = {}
    origin: dict[str, str] = {}
    if file is None and environment.get("TENSORQ_CONFIG"):
        file = Path(environment["TENSORQ_CONFIG"])
    if file is not None:
        for name, value in _read(file).items():
            merged[name], origin[name] = value, f"{file}: {name}"
    for name in WorkerConfig.model_fields:
        variable = f"TENSORQ_{name.upper()}"
        # One that is empty is taken for unset, as by click and by shells: Path("") is the current folder.
        if environment.get(variable):
            merged[name], origin[name] = environment[variable], variable
    for name, value in options.items():
        if value is not None:
            merged[name], origin[name] = value, "--" + name.replace("_", "-")
    if "models" not in merged:
        raise ConfigError("no model repository: give --models DIR or set TENSORQ_MODELS=DIR")
    try:
        config = WorkerConfig.model_validate(merged)
    except ValidationError as exc:
        wrong = [f"{origin[str(e['loc'][0])]}: {_complaint(e)}" for e in exc.errors()]
        raise ConfigError("; ".join(wrong)) from exc
    _expect_lease_outlasts_beats(config, origin)
    return config


def _expect_lease_outlasts_beats(config: WorkerConfig, origin: Mapping[str, str]) -> None:
    if 2 * config.beat_s <= config.lease_s:
        return
    beat, lease = f"{config.beat_s:g}", config.lease_s
    if "beat_s" in origin:
        words = f"{origin['beat_s']}: got {config.beat_s}, too long for lease_s = {lease}"
    else:
        words = f"{origin['lease_s']}: got {lease}, too short for beat_s = {beat}"
    raise ConfigError(
        f"{words}: a lease must outlast two beats; give beat_s of at most {lease / 2:g}, "
        f"or lease_s of at least {math.ceil(2 * config.beat_s)}"
    )


def _complaint(error: ErrorDetails) -> str:
    if error["type"] == "extra_forbidden":
        if error["loc"] == ("redis",):
            # Whoever reads the file would read the password too.
            return "unknown key; give --redis or set TENSORQ_REDIS"
        near = get_close_matches(str(error["loc"][0]), WorkerConfig.model_fields, n=1)
        return f"unknown key; did you mean {near[0]!r}?" if near else "unknown key; remove it"
    return f"got {error['input']!r}: {error['msg'][:1].lower()}{error['msg'][1:]}"


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as exc:
        raise ConfigError(f"{file}: cannot be read as TOML: {exc}") from exc
