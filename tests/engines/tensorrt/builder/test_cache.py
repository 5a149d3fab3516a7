import os
import tempfile
from pathlib import Path

import pytest

from tensorq_engines import BuildFailed
from tensorq_engines.tensorrt.builder import find, find_or_build
from tensorq_engines.tensorrt.builder.cache import cache_folders, writable_folder
from tensorq_engines.tensorrt.builder.files import write_atomic

NOBODY = 65534


@pytest.fixture
def read_only():
    """A folder that this process may not write to, also where the tests run as root."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o555)
        root = os.geteuid() == 0
        if root:
            os.seteuid(NOBODY)
        try:
            yield Path(folder)
        finally:
            if root:
                os.seteuid(0)
            Path(folder).chmod(0o755)


def test_a_plan_goes_into_the_models_folder_and_is_found_again(build, write, flavour):
    plan = build()
    assert plan.path.parent == write().folder / ".tensorq"
    assert plan.path.read_bytes() == plan.read()
    assert {file.suffix for file in plan.path.parent.iterdir()} == {".plan", ".json", ".lock"}
    assert find(write(), flavour, None) == plan
    before = plan.path.stat().st_mtime_ns
    assert build() == plan
    assert plan.path.stat().st_mtime_ns == before
    assert find(write(settings="precision = 'fp16'"), flavour, None) is None


def test_force_builds_again(build, write, flavour):
    before = build().path.stat().st_mtime_ns
    assert find_or_build(write(), flavour, None, force=True).path.stat().st_mtime_ns != before


def damage_plan(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (damage_plan, "damaged or cut short"),
        (lambda path: path.write_bytes(path.read_bytes()[:100]), "damaged or cut short"),
        (lambda path: path.with_name(f"{path.name}.json").write_text("{"), "not a plan's sidecar"),
        (lambda path: path.with_name(f"{path.name}.json").unlink(), "no sidecar"),
    ],
)
def test_a_damaged_plan_is_built_anew_with_a_warning(build, write, flavour, caplog, damage, words):
    plan = build()
    damage(plan.path)
    assert find(write(), flavour, None) is None
    assert build().read()
    (record,) = [item for item in caplog.records if item.levelname == "WARNING" and "anew" in item.message]
    assert words in record.message
    assert str(plan.path) in record.message


def test_a_read_only_folder_sends_plans_to_the_users_cache(read_only, tmp_path):
    with tempfile.TemporaryDirectory() as own:
        folders = (read_only / ".tensorq", Path(own) / "a" / "b")
        assert writable_folder("m", folders) == folders[1]


def test_nowhere_to_write_is_refused_with_both_places(read_only):
    folders = (read_only / "one", read_only / "two")
    with pytest.raises(BuildFailed, match=r"'m'.*one: Permission denied.*two: Permission denied.*XDG_CACHE"):
        writable_folder("m", folders)


def test_a_plan_in_the_users_cache_is_found(write, flavour, user_cache, build):
    folder = write().folder
    (folder / ".tensorq").write_text("a file where the folder would be")
    plan = build()
    assert plan.path.parent.parent == user_cache
    assert find(write(), flavour, None) == plan


def test_models_of_one_name_in_two_repositories_do_not_share_a_cache(tmp_path, monkeypatch):
    assert cache_folders(tmp_path / "a" / "m")[1] != cache_folders(tmp_path / "b" / "m")[1]
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folders(tmp_path / "m")[1].parent == tmp_path / ".cache" / "tensorq"


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    write_atomic(tmp_path / "f", b"old")
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left")))
    with pytest.raises(OSError, match="No space"):
        write_atomic(tmp_path / "f", b"new")
    assert [file.name for file in tmp_path.iterdir() if file.is_file()] == ["f"]
    assert (tmp_path / "f").read_bytes() == b"old"


def test_a_full_disk_is_a_refusal(write, flavour, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tensorq_engines.tensorrt.builder.cache.write_atomic", full)
    with pytest.raises(BuildFailed, match=r"cannot be written to .*: No space left on device; make room"):
        find_or_build(write(), flavour, None)


def test_a_user_without_a_home_has_the_models_folder_only(tmp_path, monkeypatch):
    def nowhere():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", nowhere)
    assert cache_folders(tmp_path / "m") == (tmp_path / "m" / ".tensorq",)


def test_a_folder_whose_path_is_not_utf_8_has_a_place_of_its_own(tmp_path):
    folders = [cache_folders(Path(os.fsdecode(name)))[1] for name in (b"/a\xff/m", b"/a\xfe/m")]
    assert folders[0] != folders[1]
