import io
import zipfile

import click
import numpy as np
import pytest

from tensorq.errors import InputError
from tensorq_worker.cli.inputs import find_jobs


@pytest.fixture(autouse=True)
def _inside(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def find(*arguments):
    return [(job.name, {name: str(path) for name, path in job.files}) for job in find_jobs(arguments, _only)]


def _only():
    return "x"


def test_pairs_make_one_job(save):
    save("a.npy")
    save("b.npy")
    assert find("x=a.npy", "mask=b.npy") == [("a", {"x": "a.npy", "mask": "b.npy"})]


def test_a_pattern_makes_a_job_for_each_file_in_order(save):
    for name in ("in/b.npy", "in/a.npy", "in/c.txt.npy"):
        save(name)
    assert find("x=in/*.npy") == [
        ("a", {"x": "in/a.npy"}),
        ("b", {"x": "in/b.npy"}),
        ("c.txt", {"x": "in/c.txt.npy"}),
    ]


def test_files_of_several_inputs_go_by_their_names(save):
    for name in ("p/1.npy", "p/2.npy", "q/2.npy", "q/1.npy"):
        save(name)
    assert find("a=p/*.npy", "b=q/*.npy") == [
        ("1", {"a": "p/1.npy", "b": "q/1.npy"}),
        ("2", {"a": "p/2.npy", "b": "q/2.npy"}),
    ]


def test_a_file_without_its_counterpart_is_named(save):
    for name in ("p/1.npy", "p/2.npy", "q/1.npy"):
        save(name)
    with pytest.raises(click.UsageError, match="input 'b' has no file '2'"):
        find("a=p/*.npy", "b=q/*.npy")


def test_an_input_of_one_file_shares_it_among_all_jobs(save):
    for name in ("p/1.npy", "p/2.npy", "size.npy"):
        save(name)
    assert find("a=p/*.npy", "s=size.npy") == [
        ("1", {"a": "p/1.npy", "s": "size.npy"}),
        ("2", {"a": "p/2.npy", "s": "size.npy"}),
    ]


def test_what_the_shell_made_of_braces_is_many_files(save):
    save("1.npy")
    save("2.npy")
    assert find("x=1.npy", "x=2.npy") == [("1", {"x": "1.npy"}), ("2", {"x": "2.npy"})]


def test_files_alone_are_a_job_each(save):
    save("1.npy")
    save("2.npz", a=np.ones(1))
    assert find("1.npy", "2.npz") == [("1", {"x": "1.npy"}), ("2", {"": "2.npz"})]


def test_the_only_input_is_not_asked_for_where_archives_name_theirs(save):
    save("1.npz", a=np.ones(1))
    (job,) = find_jobs(["1.npz"], lambda: pytest.fail("asked"))
    np.testing.assert_array_equal(job.load()["a"], np.ones(1))


def test_results_of_files_of_one_name_go_by_the_jobs_id(save):
    save("p/1.npy")
    save("q/1.npy")
    save("q/2.npy")
    assert [name for name, _ in find("p/1.npy", "q/1.npy", "q/2.npy")] == ["", "", "2"]


def test_a_file_that_holds_an_equals_sign_is_found(save):
    save("x=1.npy")
    assert find("x=1.npy") == [("x=1", {"x": "x=1.npy"})]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["a.npy", "x=a.npy"], "give every file as NAME=FILE, or none"),
        (["none.npy"], "'none.npy': no such file"),
        (["x=none.npy"], "'none.npy': no such file"),
        (["x=none*.npy"], r"'none\*.npy': no file matches"),
        (["."], "no such file"),
    ],
)
def test_arguments_that_make_no_jobs_say_why(save, arguments, words):
    save("a.npy")
    with pytest.raises(click.UsageError, match=words):
        find(*arguments)


def load(argument):
    (job,) = find_jobs([argument], _only)
    return job.load()


def test_arrays_are_read_as_they_are(save):
    save("a.npy", np.int16([[1, -2]]))
    assert load("a.npy")["x"].dtype == np.int16
    np.testing.assert_array_equal(load("z=a.npy")["z"], [[1, -2]])


def test_nothing_is_unpickled(save):
    class Trap:
        def __reduce__(self):
            return pytest.fail, ("unpickled",)

    save("object.npy", np.array([Trap()], dtype=object))
    with pytest.raises(InputError, match=r"object\.npy: cannot be read as arrays: Object arrays"):
        load("object.npy")
    np.savez("object.npz", a=np.array([Trap()], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match=r"object\.npz: cannot be read as arrays: Object arrays"):
        load("object.npz")


def whole_array() -> bytes:
    file = io.BytesIO()
    np.save(file, np.arange(1000))
    return file.getvalue()


@pytest.mark.parametrize("suffix", [".npy", ".npz"])
@pytest.mark.parametrize("content", [b"", b"hello", b"\x80\x04N."])
def test_a_file_that_holds_no_arrays_is_named(tmp_path, suffix, content):
    (tmp_path / f"junk{suffix}").write_bytes(content)
    with pytest.raises(InputError, match=rf"junk\{suffix}: is neither an \.npy nor an \.npz file"):
        load(f"junk{suffix}")


@pytest.mark.parametrize(
    "content", [whole_array()[:-1], whole_array()[:20], b"\x93NUMPY\x09\x09", b"PK junk"]
)
def test_a_file_that_is_cut_short_is_named(tmp_path, content):
    (tmp_path / "cut.npz").write_bytes(content)
    (tmp_path / "cut.npy").write_bytes(content)
    for name in ("cut.npy", "cut.npz"):
        with pytest.raises(InputError, match=rf"^{name}: "):
            load(name)


def test_an_archive_under_a_name_and_an_array_without_one_say_what_to_do(save, tmp_path):
    save("many.npz", a=np.ones(1))
    with pytest.raises(InputError, match="give it without NAME="):
        load("x=many.npz")
    save("one.npy").rename(tmp_path / "one.npz")
    with pytest.raises(InputError, match="give it as NAME=FILE"):
        load("one.npz")


def test_an_archive_of_other_things_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "notes.npz", "w") as archive:
        archive.writestr("readme.txt", "hello")
    with pytest.raises(InputError, match=r"'readme\.txt' in it is no array"):
        load("notes.npz")
