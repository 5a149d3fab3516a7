from pathlib import Path

import pytest
from pydantic import ValidationError

from tensorq.errors import ConfigError
from tensorq_worker.config import WorkerConfig, load_config


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "worker.toml"

    def write(text: str) -> Path:
        path.write_text(text)
        return path

    return write


def test_the_defaults_need_only_a_repository():
    config = load_config({"models": Path("m")}, {})
    assert config == WorkerConfig(models=Path("m"))
    assert (config.lanes, config.load, config.budget_mib, config.allow_functions) == (1, "auto", None, False)


def test_command_line_then_environment_then_file_then_default(file):
    path = file('models = "file"\nlanes = 2\nslots = 3\nthreads = 4\n')
    environment = {"TENSORQ_LANES": "5", "TENSORQ_SLOTS": "6"}
    config = load_config({"lanes": 7, "slots": None}, environment, path)
    assert (config.lanes, config.slots, config.threads, config.lease_s) == (7, 6, 4, 90)
    assert config.models == Path("file")


def test_the_file_may_be_named_by_the_environment(file):
    path = str(file('models = "m"\nlanes = 2\n'))
    assert load_config({}, {"TENSORQ_CONFIG": path}).lanes == 2


def test_the_command_lines_file_beats_the_environments(file):
    path = file('models = "m"\n')
    assert load_config({}, {"TENSORQ_CONFIG": "/nowhere"}, path).models == Path("m")


def test_the_process_environment_is_read_where_none_is_given(monkeypatch):
    monkeypatch.setenv("TENSORQ_MODELS", "here")
    assert load_config({}).models == Path("here")


@pytest.mark.parametrize(
    ("word", "value"), [("false", False), ("0", False), ("no", False), ("true", True), ("1", True)]
)
def test_booleans_in_the_environment_are_read_by_their_words(word, value):
    environment = {"TENSORQ_MODELS": "m", "TENSORQ_ALLOW_FUNCTIONS": word}
    assert load_config({}, environment).allow_functions == value


def test_no_repository_says_how_to_give_one():
    with pytest.raises(ConfigError, match="give --models DIR or set TENSORQ_MODELS"):
        load_config({}, {})


def test_an_empty_variable_counts_as_unset():
    with pytest.raises(ConfigError, match="no model repository"):
        load_config({}, {"TENSORQ_MODELS": ""})
    assert load_config({"models": "m"}, {"TENSORQ_LANES": "", "TENSORQ_HEALTH_FILE": ""}).health_file is None


@pytest.mark.parametrize(("name", "most"), [("lanes", 64), ("slots", 64), ("threads", 256)])
def test_no_worker_starts_more_than_a_host_can_run(name, most):
    assert getattr(load_config({"models": "m", name: most}, {}), name) == most
    with pytest.raises(ConfigError, match=f"got {most + 1}: input should be less than or equal to {most}"):
        load_config({"models": "m", name: most + 1}, {})


@pytest.mark.parametrize("name", ["lanes", "budget_mib", "beat_s"])
def test_true_is_no_number_in_the_file(file, name):
    path = file(f'models = "m"\n{name} = true\n')
    with pytest.raises(ConfigError, match=f"{name}: got True: input should be a number"):
        load_config({}, {}, path)


def test_every_malformed_value_names_where_it_came_from(file):
    path = file('models = "m"\nlanes = "two"\nlanez = 3\nwhatever = 1\n')
    with pytest.raises(ConfigError) as caught:
        load_config({"lease_s": 1}, {"TENSORQ_ALLOW_FUNCTIONS": "perhaps", "TENSORQ_LOAD": "soon"}, path)
    message = str(caught.value)
    assert f"{path}: lanes: got 'two': input should be a valid integer" in message
    assert f"{path}: lanez: unknown key; did you mean 'lanes'?" in message
    assert f"{path}: whatever: unknown key; remove it" in message
    assert "--lease-s: got 1: input should be greater than or equal to 3" in message
    assert "TENSORQ_ALLOW_FUNCTIONS: got 'perhaps': input should be a valid boolean" in message
    assert "TENSORQ_LOAD: got 'soon': input should be 'auto', 'eager', 'lazy' or 'lru'" in message
    assert "\n" not in message


@pytest.mark.parametrize("text", ["models = ", "\x00", "[models]\n[models]"])
def test_a_file_that_is_no_toml_is_named(file, text):
    path = file(text)
    with pytest.raises(ConfigError, match=f"{path}: cannot be read as TOML"):
        load_config({}, {}, path)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ConfigError, match="nowhere"):
        load_config({}, {}, tmp_path / "nowhere")


def test_a_config_does_not_change():
    config = WorkerConfig(models=Path("m"))
    with pytest.raises(ValidationError, match="frozen"):
        config.lanes = 2


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"lease_s": 10}, "--lease-s: got 10, too short for beat_s = 15: a lease must outlast two beats"),
        ({"beat_s": 60.0}, "--beat-s: got 60.0, too long for lease_s = 90: a lease must outlast two beats"),
        ({"lease_s": 30, "beat_s": 15.1}, "--beat-s: got 15.1, too long for lease_s = 30"),
    ],
)
def test_a_lease_that_would_lapse_between_beats_is_refused(options, words):
    with pytest.raises(ConfigError) as caught:
        load_config({"models": "m", **options}, {})
    assert str(caught.value).startswith(words)


def test_a_lease_of_two_beats_is_long_enough():
    assert load_config({"models": "m", "lease_s": 30}, {}).beat_s == 15
    assert load_config({"models": "m", "lease_s": 3, "beat_s": 1.5}, {}).lease_s == 3


@pytest.mark.parametrize("name", ["aging_s", "beat_s"])
def test_seconds_are_finite(name):
    variable = f"TENSORQ_{name.upper()}"
    with pytest.raises(ConfigError, match=f"{variable}: got 'inf': input should be a finite number"):
        load_config({"models": "m"}, {variable: "inf"})


def test_the_url_is_no_key_of_the_file_and_its_value_is_not_repeated(file):
    path = file('models = "m"\nredis = "redis://:secret@host"\n')
    with pytest.raises(ConfigError) as caught:
        load_config({}, {}, path)
    assert str(caught.value) == f"{path}: redis: unknown key; give --redis or set TENSORQ_REDIS"
