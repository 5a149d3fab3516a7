"""A user's mistakes: a line on stderr and an exit code, never a traceback."""

import os

import pytest

from models import catalogue

NOBODY = "redis://localhost:1"
COMMANDS = {
    "submit": ["submit", "net", "x=a.npy"],
    "result": ["result", "some-id"],
    "models list": ["models", "list"],
    "worker": ["worker", "--models", "repository"],
}
each_command = pytest.mark.parametrize("command", COMMANDS)


@pytest.fixture(autouse=True)
def _files(save, tmp_path):
    save("a.npy")
    catalogue.write_repository(tmp_path / "repository", {"net": (catalogue.affine(), None)})


@each_command
def test_no_redis_says_how_to_name_one(tensorq, command):
    result = tensorq(*COMMANDS[command])
    assert result.exit_code == os.EX_CONFIG
    assert result.stderr.startswith(f"tensorq {command}: no Redis: give --redis URL or set TENSORQ_REDIS")


@each_command
def test_a_redis_that_does_not_answer_is_named(tensorq, command):
    result = tensorq(*COMMANDS[command], "--redis", NOBODY)
    assert result.exit_code == os.EX_UNAVAILABLE
    assert result.stderr.startswith(f"tensorq {command}: Redis at localhost:1")
    assert result.stderr.count("\n") == 1


@each_command
def test_a_malformed_url_is_not_repeated(tensorq, command):
    result = tensorq(*COMMANDS[command], "--redis", "http://me:secret@host")
    assert result.exit_code == os.EX_CONFIG
    assert "the Redis URL is malformed" in result.stderr
    assert "secret" not in result.output


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--models", "nowhere"], "nowhere: cannot be read"),
        (["--models", "empty"], "empty: no models there; `tensorq models check empty`"),
        (
            ["--models", "repository", "--lanes", "0"],
            "--lanes: got 0: input should be greater than or equal to 1",
        ),
        (["--models", "repository", "--config", "none.toml"], "none.toml: cannot be read as TOML"),
        ([], "no model repository: give --models DIR or set TENSORQ_MODELS=DIR"),
    ],
)
def test_a_worker_that_is_set_up_wrongly_says_so(tensorq, tmp_path, arguments, words):
    (tmp_path / "empty").mkdir()
    result = tensorq("worker", "--redis", NOBODY, *arguments)
    assert result.exit_code == os.EX_CONFIG
    assert result.stderr.startswith(f"tensorq worker: {words}")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["submit", "net"], "Missing argument 'FILE...'"),
        (["submit", "net", "x=a.npy", "--timeout", "soon"], "option timeout: got 'soon'"),
        (["submit", "net", "x=a.npy", "--ttl", "0"], "option ttl: got '0'"),
        (["submit", "net", "x=a.npy", "--result-ttl", "x"], "option result_ttl: got 'x'"),
        (["submit", "net", "x=a.npy", "--priority", "urgent"], "'urgent' is not one of"),
        (["result"], "Missing argument 'JOB_ID...'"),
        (["result", "../etc"], "expected letters, digits, underscores and dashes"),
        (["models", "check"], "Missing argument 'DIR'"),
        (["models", "bogus"], "No such command"),
    ],
)
def test_a_wrong_command_line_is_clicks_to_explain(tensorq, arguments, words):
    result = tensorq(*arguments)
    assert result.exit_code == 2
    assert words in result.stderr


def test_without_any_model_the_folder_is_what_to_mend(tensorq, tmp_path):
    (tmp_path / "empty").mkdir()
    result = tensorq("plan", "empty/net")
    assert result.exit_code == os.EX_CONFIG
    assert "there is no model 'net'; give the folder that holds net/model.onnx" in result.stderr


def test_a_name_that_is_no_model_name_is_refused_before_redis_is_asked(tensorq):
    result = tensorq("submit", "no/model", "x=a.npy", "--redis", NOBODY)
    assert result.exit_code == os.EX_DATAERR
    assert "'no/model' is not a model name" in result.stderr
