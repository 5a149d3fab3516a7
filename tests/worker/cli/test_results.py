import errno

import numpy as np
import pytest

from tensorq_worker.cli.results import write


def test_outputs_of_any_name_are_written(tmp_path):
    names = ["y", "file", "allow_pickle", "args", "arr_0", "a/b", "x:0"]
    outputs = {name: np.full((1, 2), n, np.float16) for n, name in enumerate(names)}
    write(tmp_path / "r.npz", outputs)
    with np.load(tmp_path / "r.npz", allow_pickle=False) as found:
        assert sorted(found.files) == sorted(names)
        for name, array in outputs.items():
            np.testing.assert_array_equal(found[name], array)
            assert found[name].dtype == np.float16


def test_a_result_that_is_there_is_replaced(tmp_path):
    for number in (1, 2):
        write(tmp_path / "r.npz", {"y": np.float32([number])})
    assert np.load(tmp_path / "r.npz")["y"] == 2
    assert [path.name for path in tmp_path.iterdir()] == ["r.npz"]


def test_a_full_disk_names_the_result(tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(np.lib.format, "write_array", full)
    with pytest.raises(OSError, match="No space left") as caught:
        write(tmp_path / "r.npz", {"y": np.float32([1])})
    assert caught.value.filename == str(tmp_path / "r.npz")
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_left_of_a_write_that_fails(tmp_path):
    write(tmp_path / "r.npz", {"y": np.float32([1])})
    with pytest.raises(ValueError, match="pickle"):
        write(tmp_path / "r.npz", {"y": np.array([object()])})
    assert [path.name for path in tmp_path.iterdir()] == ["r.npz"]
    assert np.load(tmp_path / "r.npz")["y"] == 1
