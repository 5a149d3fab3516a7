from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import onnx
import pytest

from contract.onnx_subject import OnnxSubject, OpenEngine, wide_profile
from contract.subject import Subject
from fakes.install import install
from models import catalogue
from tensorq_engines import Engine, EngineOptions, Lane, Repository, create_engine, create_lane

KINDS = ("reference", "onnxruntime", "tensorrt")
HOST_KINDS = KINDS[:2]


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "tensorrt":
        install(monkeypatch)
    return request.param


@pytest.fixture
def open_engine(tmp_path: Path, kind: str) -> Iterator[OpenEngine]:
    """Opens engines of this kind from a model and the text of its model.toml, and closes them at the end."""
    with ExitStack() as stack:
        yield lambda model, settings="": stack.enter_context(engine_of(kind, tmp_path, model, settings))


@pytest.fixture
def subject(kind: str, open_engine: OpenEngine) -> Subject:
    return OnnxSubject(kind, open_engine)


@pytest.fixture
def lane(kind: str) -> Iterator[Lane]:
    with create_lane(kind) as lane:
        yield lane


def engine_of(kind: str, path: Path, model: onnx.ModelProto, settings: str = "") -> Engine:
    """An engine that is not loaded."""
    name = f"model-{len(list(path.iterdir()))}"
    if kind == "tensorrt" and "[[profile]]" not in settings:
        settings += wide_profile(model)
    catalogue.write_repository(path, {name: (model, f'engine = "{kind}"\n{settings}')})
    return create_engine(Repository(path).get(name), EngineOptions(intra_op_threads=1))
