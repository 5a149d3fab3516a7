from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from tensorq_worker.cli import main


@pytest.fixture
def tensorq(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Runs the command line in an empty folder, without settings from the developer's shell."""
    monkeypatch.chdir(tmp_path)
    for name in ("TENSORQ_REDIS", "TENSORQ_MODELS", "TENSORQ_CONFIG"):
        monkeypatch.delenv(name, raising=False)

    def run(*arguments: object) -> Result:
        result = CliRunner().invoke(main, [str(argument) for argument in arguments])
        # An exception that is none of click's own would be a traceback for the user.
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result

    return run


@pytest.fixture
def save(tmp_path: Path) -> Callable[..., Path]:
    """Saves an array as .npy, or several as .npz."""

    def save(name: str, array: object = None, **arrays: np.ndarray) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if arrays:
            np.savez(path, **arrays)
        else:
            np.save(path, np.float32([[1, 2]]) if array is None else array, allow_pickle=True)
        return path

    return save
