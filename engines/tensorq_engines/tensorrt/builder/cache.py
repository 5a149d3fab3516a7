"""Plan cache: where plans are kept, found again and checked."""

from __future__ import annotations

import hashlib
import logging
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tensorq_engines.base.digest import file_digest
from tensorq_engines.base.errors import BuildFailed, ModelLoadFailed
from tensorq_engines.tensorrt.builder.files import write_atomic
from tensorq_engines.tensorrt.builder.recipe import Recipe
from tensorq_engines.tensorrt.plan import CACHE, PlanFile
from tensorq_engines.tensorrt.sidecar import Sidecar, sidecar_path

logger = logging.getLogger(__name__)


def cache_folders(model_folder: Path) -> tuple[Path, ...]:
    """Returns where a model's plans may be: in its own folder, then in the user's cache directory."""
    root = _user_cache()
    if root is None:
        return (model_folder / CACHE,)
    place = hashlib.sha256(os.fsencode(model_folder)).hexdigest()[:12]
    return model_folder / CACHE, root / "tensorq" / f"{model_folder.name}-{place}"


def _user_cache() -> Path | None:
    base = os.environ.get("XDG_CACHE_HOME") or ""
    # The XDG specification has relative paths ignored.
    if Path(base).is_absolute():
        return Path(base)
    try:
        return Path.home() / ".cache"
    except RuntimeError:  # a user by number only, as in a container, and no HOME
        return None


def writable_folder(model: str, folders: Sequence[Path]) -> Path:
    """Returns the first folder that files can be written to, made where it is not there.

    Raises:
        BuildFailed: there is none.
    """
    refusals = []
    for folder in folders:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                return folder
        except OSError as exc:
            refusals.append(f"{folder}: {exc.strerror or exc}")
    raise BuildFailed(
        f"model {model!r}: its plan can be written nowhere ({'; '.join(refusals)}); make one of them "
        "writable, or set XDG_CACHE_HOME to a folder that is"
    )


def find_plan(folders: Sequence[Path], recipe: Recipe, *, warn: bool = False) -> PlanFile | None:
    """Returns the plan of a recipe where it is there and undamaged.

    Args:
        folders: where to look, in order.
        recipe: what the plan is made from.
        warn: log a plan that is there but cannot be used.
    """
    for folder in folders:
        path = folder / recipe.file_name
        # Unlike Path.exists, this is False where the folder may not be looked into.
        if not os.path.exists(path):
            continue
        fault = _fault(path, recipe.key)
        if fault is None:
            return PlanFile.find(path)
        if warn:
            logger.warning("%s cannot be used and is built anew: %s", path, fault)
    return None


def store_plan(folder: Path, recipe: Recipe, plan: Any, sidecar: Sidecar) -> PlanFile:
    """Writes a plan and its sidecar.

    Args:
        folder: a folder that can be written to.
        recipe: what the plan was made from.
        plan: its bytes.
        sidecar: its description.

    Raises:
        OSError: they cannot be written.
    """
    path = folder / recipe.file_name
    # The sidecar last: a plan without it counts as not there.
    write_atomic(path, plan)
    write_atomic(sidecar_path(path), sidecar.to_json().encode())
    return PlanFile(path, sidecar)


def _fault(path: Path, key: str) -> str | None:
    try:
        sidecar = PlanFile.find(path).sidecar
        if sidecar is None:
            return "it has no sidecar"
        if sidecar.recipe != key:
            return "its sidecar is of another recipe"
        if file_digest(path) != sidecar.sha256:
            return "its sha256 is not the sidecar's, so it is damaged or cut short"
    except (OSError, ModelLoadFailed) as exc:
        return str(exc)
    return None
