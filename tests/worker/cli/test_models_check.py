import os

from models import catalogue
from tensorq_engines import Profile
from tensorq_engines.onnx_model.engine import OnnxEngine


def test_good_models_are_described(tensorq, tmp_path):
    catalogue.write_repository(
        tmp_path, {"mlp": (catalogue.mlp(), None), "once": (catalogue.no_batch(), None)}
    )
    result = tensorq("models", "check", tmp_path)
    assert result.exit_code == 0
    assert "signature  x: float32[N, 128] -> y: float32[N, 16]" in result.stdout
    assert "ladder     1, 8, 32" in result.stdout
    assert "engine     onnxruntime" in result.stdout
    assert result.stderr == ""


def test_everything_wrong_is_said_at_once_beside_what_is_good(tensorq, tmp_path):
    bad = 'engine = "onnx"\n[batching]\nmax_delay = 5\n'
    catalogue.write_repository(tmp_path, {"bad": (catalogue.mlp(), bad), "good": (catalogue.mlp(), None)})
    (tmp_path / "empty").mkdir()
    result = tensorq("models", "check", tmp_path)
    assert result.exit_code == os.EX_DATAERR
    problems = [line for line in result.stdout.splitlines() if line.startswith(str(tmp_path))]
    assert len(problems) == 3
    assert any("bad/model.toml: engine: got 'onnx'" in line for line in problems)
    assert any("max_delay: unknown key; did you mean 'max_delay_ms'?" in line for line in problems)
    assert any("there is no file 'model.onnx'" in line for line in problems)
    assert "\ngood\n" in result.stdout
    assert "\nbad\n" not in result.stdout
    assert result.stderr == "tensorq models check: problems: 3\n"


def test_a_model_for_another_machine_is_no_problem(tensorq, tmp_path):
    catalogue.write_repository(tmp_path, {"plan": (catalogue.mlp(), 'engine = "tensorrt"\n')})
    (tmp_path / "plan" / "model.onnx").rename(tmp_path / "plan" / "model.plan")
    result = tensorq("models", "check", tmp_path)
    assert result.exit_code == 0
    assert "tensorrt" in result.stdout


def test_buckets_that_only_the_engine_can_judge_are_judged(tensorq, tmp_path, monkeypatch):
    settings = 'engine = "reference"\n[buckets]\nW = [64]\n'
    catalogue.write_repository(tmp_path, {"net": (catalogue.affine(), settings)})
    assert tensorq("models", "check", tmp_path).exit_code == 0
    # As an engine built with other profiles than model.toml's would have it.
    profile = Profile.of(x=((1, 1), (1, 8), (8, 32)))
    monkeypatch.setattr(OnnxEngine, "profiles", (profile,))
    result = tensorq("models", "check", tmp_path)
    assert result.exit_code == os.EX_DATAERR
    assert "model.toml: buckets.W: lengths [64] are outside all profiles" in result.stdout
    assert result.stderr == "tensorq models check: problems: 1\n"


def test_a_folder_that_is_none_says_so(tensorq, tmp_path):
    for path, words in ((tmp_path / "nowhere", "cannot be read"), (tmp_path, "holds no models")):
        result = tensorq("models", "check", path)
        assert result.exit_code == os.EX_DATAERR
        assert words in result.stdout


def test_the_folder_may_come_from_the_environment(tensorq, tmp_path, monkeypatch):
    catalogue.write_repository(tmp_path, {"mlp": (catalogue.mlp(), None)})
    monkeypatch.setenv("TENSORQ_MODELS", str(tmp_path))
    assert tensorq("models", "check").exit_code == 0
    monkeypatch.delenv("TENSORQ_MODELS")
    assert tensorq("models", "check").exit_code == 2
