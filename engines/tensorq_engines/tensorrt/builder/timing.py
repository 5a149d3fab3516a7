"""Timing cache: what TensorRT measured in earlier builds for one target, kept beside the plans."""

from __future__ import annotations

import hashlib
import logging
from pathlib import Path
from typing import Any

from tensorq_engines.tensorrt.builder.files import write_atomic
from tensorq_engines.tensorrt.builder.lock import build_lock
from tensorq_engines.tensorrt.builder.recipe import Recipe

logger = logging.getLogger(__name__)


def timing_path(folder: Path, recipe: Recipe) -> Path:
    """Returns the timing cache's file; timings hold for one device model and one TensorRT."""
    device = hashlib.sha256(recipe.device_name.encode()).hexdigest()[:8]
    return folder / f"{recipe.target}-{device}.timing"


def load_timings(config: Any, path: Path) -> Any:
    """Gives the timings of ``path`` to a builder configuration, and returns its timing cache.

    A file that cannot be used counts as empty, with a warning: the build is only slower.
    """
    try:
        data = path.read_bytes()
    except OSError:
        data = b""
    cache = _make(config, data, path)
    if not config.set_timing_cache(cache, False):
        logger.warning("%s is of another GPU or TensorRT: the build measures anew", path)
        cache = _make(config, b"", path)
        config.set_timing_cache(cache, False)
    return cache


def save_timings(config: Any, path: Path, what: str) -> None:
    """Writes a finished build's timings together with those that others wrote meanwhile.

    Args:
        config: the build's configuration.
        path: the file.
        what: what was built, for the log.
    """
    try:
        with build_lock(path.with_suffix(".timing.lock"), f"timing cache of {what}"):
            cache = config.get_timing_cache()
            if path.exists():
                cache.combine(_make(config, path.read_bytes(), path), False)
            write_atomic(path, memoryview(cache.serialize()))
    except OSError as exc:
        logger.warning("%s cannot be written, so the next build is slower: %s", path, exc)


def _make(config: Any, data: bytes, path: Path) -> Any:
    cache = config.create_timing_cache(data)
    if cache is None:
        logger.warning("%s is damaged: the build measures anew", path)
        cache = config.create_timing_cache(b"")
    return cache
