import json
import logging

import pytest

from tensorq_engines import BuildFailed, CostStore

COSTS = {((3, 48, 320),): {1: 0.5, 8: 1.25}, ((3, 48, 64), ()): {32: 7.0}}


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "m"
    folder.mkdir()
    return lambda identity="plan 1": CostStore("m", folder, identity)


def files(tmp_path):
    return sorted(tmp_path.rglob("costs-*.json"))


def test_gives_back_what_was_saved(store, tmp_path):
    assert store().load().known == {}
    store().save(COSTS)
    assert store().load().known == COSTS
    assert [file.parent.name for file in files(tmp_path)] == [".tensorq"]


def test_costs_of_another_plan_or_device_are_not_found(store, tmp_path):
    store("plan 1").save(COSTS)
    assert store("plan 2").load().known == {}
    (first,) = files(tmp_path)
    store("plan 2").save({})
    (second,) = set(files(tmp_path)) - {first}
    assert store("plan 1").load().known == COSTS
    second.write_bytes(first.read_bytes())
    assert store("plan 2").load().known == {}


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"[]",
        b"\xff\xfe",
        b'{"version": 1}',
        lambda text: text[:-20],
        lambda text: text.replace(b"0.5", b"-0.5"),
        lambda text: text.replace(b"0.5", b"NaN"),
        lambda text: text.replace(b'"1"', b'"x"'),
        lambda text: text.replace(b"320", b'"a"'),
        lambda text: text.replace(b"320", b"1e999"),
        lambda text: text.replace(b"0.5", b"1" + 400 * b"0"),
        b"[" * 100_000,
    ],
)
def test_a_damaged_file_is_passed_over_with_a_warning(store, tmp_path, caplog, damage):
    store().save(COSTS)
    (file,) = files(tmp_path)
    file.write_bytes(damage if isinstance(damage, bytes) else damage(file.read_bytes()))
    with caplog.at_level(logging.WARNING):
        assert store().load().known == {}
    assert file.name in caplog.text
    store().save(COSTS)
    assert store().load().known == COSTS


def test_another_version_of_the_format_is_passed_over(store, tmp_path):
    store().save(COSTS)
    (file,) = files(tmp_path)
    file.write_text(json.dumps(json.loads(file.read_text()) | {"version": 99}))
    assert store().load().known == {}


def test_where_the_models_folder_cannot_be_written_the_users_cache_takes_them(store, tmp_path, monkeypatch):
    (tmp_path / "m" / ".tensorq").write_text("in the way")
    store().save(COSTS)
    assert store().load().known == COSTS
    assert files(tmp_path)[0].is_relative_to(tmp_path / "cache")
    (tmp_path / "blocked").write_text("in the way")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "blocked"))
    with pytest.raises(BuildFailed, match="nowhere"):
        store().save(COSTS)
