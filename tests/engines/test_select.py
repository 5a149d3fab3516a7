import pytest

from fakes.install import install
from models import catalogue
from tensorq_engines import (
    EngineOptions,
    ModelLoadFailed,
    Repository,
    create_engine,
    create_gauge,
    create_lane,
)


@pytest.fixture
def entry(tmp_path):
    def write(settings):
        catalogue.write_repository(tmp_path, {"m": (catalogue.affine(), settings)})
        return Repository(tmp_path).get("m")

    return write


@pytest.mark.parametrize(
    ("settings", "kind"),
    [(None, "onnxruntime"), ("engine = 'auto'", "onnxruntime"), ("engine = 'reference'", "reference")],
)
def test_the_settings_choose_the_engine(entry, settings, kind):
    engine = create_engine(entry(settings))
    assert (engine.kind, engine.loaded, engine.name) == (kind, False, "m")
    with create_lane(engine.kind, 4) as lane:
        assert (lane.kind, lane.slot_count) == (kind, 4)


def test_auto_takes_tensorrt_where_there_are_a_gpu_and_its_module(entry, monkeypatch):
    install(monkeypatch)
    assert create_engine(entry("engine = 'auto'")).kind == "tensorrt"


def test_tensorrt_that_is_asked_for_without_a_gpu_fails_where_it_is_loaded(entry):
    engine = create_engine(entry("engine = 'tensorrt'"))
    assert (engine.kind, engine.loaded) == ("tensorrt", False)


def test_a_plan_is_tensorrts(entry, tmp_path):
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "model.plan").write_bytes(b"no plan")
    engine = create_engine(Repository(tmp_path).get("m"))
    assert engine.kind == "tensorrt"
    with pytest.raises(ModelLoadFailed, match=r"'m'.*model\.plan.*no usable GPU.*runs on a GPU only"):
        engine.load()


def test_a_plan_is_refused_by_other_engines(entry, tmp_path):
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "model.plan").write_bytes(b"no plan")
    (tmp_path / "m" / "model.toml").write_text("engine = 'onnxruntime'")
    with pytest.raises(ModelLoadFailed, match=r"runs \.onnx files, got .*model\.plan"):
        create_engine(Repository(tmp_path).get("m"))


def test_a_provider_that_is_absent_is_refused_with_those_that_are_there(entry):
    options = EngineOptions(providers=("NoSuchExecutionProvider",))
    with pytest.raises(ModelLoadFailed, match=r"no NoSuchExecutionProvider, only .*CPUExecutionProvider"):
        create_engine(entry(None), options).load()


def test_threads_and_providers_reach_the_session(entry):
    options = EngineOptions(intra_op_threads=1, providers=("CPUExecutionProvider",))
    with create_engine(entry(None), options) as engine:
        assert engine._session.get_session_options().intra_op_num_threads == 1
        assert engine._session.get_providers() == ["CPUExecutionProvider"]


def test_an_unknown_lane_is_refused():
    with pytest.raises(ValueError, match="expected one of onnxruntime, tensorrt, reference"):
        create_lane("cuda")


def test_each_kind_has_a_gauge_and_only_a_gpu_tells(monkeypatch):
    assert [create_gauge(kind).used_bytes() for kind in ("onnxruntime", "reference")] == [None, None]
    cuda = install(monkeypatch).cuda
    gauge = create_gauge("tensorrt")
    assert cuda.calls["cuInit"] == 0
    cuda.runtime.cudaMalloc(4096)
    assert gauge.used_bytes() == 4096
    with pytest.raises(ValueError, match="got kind 'abacus', expected one of onnxruntime"):
        create_gauge("abacus")
