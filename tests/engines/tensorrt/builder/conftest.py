import os
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest

from models import catalogue
from tensorq_engines import ModelEntry, Repository
from tensorq_engines.tensorrt import flavour as flavours
from tensorq_engines.tensorrt.builder import find_or_build
from tensorq_engines.tensorrt.flavour import Flavour
from tensorq_engines.tensorrt.plan import PlanFile

Write = Callable[..., ModelEntry]
Build = Callable[..., PlanFile]


@pytest.fixture(scope="session")
def flavour() -> Flavour:
    """TensorRT-RTX, which builds without a GPU."""
    if "tensorrt_rtx" not in flavours.installed() and "CI" not in os.environ:
        pytest.skip("tensorrt-rtx-cu13 is not installed")
    return flavours.find("tensorrt_rtx")


@pytest.fixture(autouse=True)
def user_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "tensorq"


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes a model's folder anew and reads its entry."""

    def one(model: onnx.ModelProto | None = None, settings: str = "", name: str = "m") -> ModelEntry:
        folder = tmp_path / "repository" / name
        folder.mkdir(parents=True, exist_ok=True)
        data = (catalogue.mlp() if model is None else model).SerializeToString()
        (folder / "model.onnx").write_bytes(data)
        (folder / "model.toml").write_text(settings, encoding="utf-8")
        return Repository(folder.parent).get(name)

    return one


@pytest.fixture
def build(write: Write, flavour: Flavour) -> Build:
    """Writes a model and builds its plan."""
    return lambda *args, **kwargs: find_or_build(write(*args, **kwargs), flavour, None)
