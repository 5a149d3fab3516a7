from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import onnx
import pytest

from models import catalogue
from tensorq_engines import Engine, EngineOptions, Lane, Repository, create_engine, create_lane

OpenEngine = Callable[..., Engine]

KINDS = ("reference", "onnxruntime")


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def open_engine(tmp_path: Path, kind: str) -> Iterator[OpenEngine]:
    """Opens engines of this kind from a model and the text of its model.toml, and closes them at the end."""
    with ExitStack() as stack:
        yield lambda model, settings="": stack.enter_context(engine_of(kind, tmp_path, model, settings))


@pytest.fixture
def lane(kind: str) -> Iterator[Lane]:
    with create_lane(kind) as lane:
        yield lane


def engine_of(kind: str, path: Path, model: onnx.ModelProto, settings: str = "") -> Engine:
    name = f"model-{len(list(path.iterdir()))}"
    catalogue.write_repository(path, {name: (model, f'engine = "{kind}"\n{settings}')})
    return create_engine(Repository(path).get(name), EngineOptions(intra_op_threads=1))
