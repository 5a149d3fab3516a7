import errno
import os
import subprocess
import sys

import click
import pytest
from click.testing import CliRunner
from redis.exceptions import ConnectionError as RedisConnectionError

from tensorq.errors import (
    ConfigError,
    InputError,
    JobFailed,
    QueueFull,
    RedisUnavailable,
    TensorqError,
    UnknownModel,
)
from tensorq_engines import Problem, RepositoryError
from tensorq_worker.cli.command import Command

PROBLEMS = [Problem("a.toml", "x", "is wrong", "mend it"), Problem("b.toml", "", "too", "mend it")]


def raising(error):
    @click.group("tensorq")
    def root():
        pass

    @root.command("act", cls=Command)
    def act():
        raise error

    return CliRunner().invoke(root, ["act"])


def every(kind):
    yield kind
    for child in kind.__subclasses__():
        yield from every(child)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConfigError("no"), os.EX_CONFIG),
        (RepositoryError(PROBLEMS), os.EX_CONFIG),
        (RedisUnavailable("no"), os.EX_UNAVAILABLE),
        (RedisConnectionError("no"), os.EX_UNAVAILABLE),
        (QueueFull("no"), os.EX_TEMPFAIL),
        (InputError("no"), os.EX_DATAERR),
        (UnknownModel("no"), os.EX_DATAERR),
        (JobFailed("1", "no"), 1),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_error_is_one_line_and_an_exit_code(error, code):
    result = raising(error)
    assert result.exit_code == code
    assert result.stdout == ""
    assert result.stderr.startswith("tensorq act: ")
    assert result.stderr.count("\n") == 1


def test_every_error_of_the_tree_has_a_code():
    for kind in every(TensorqError):
        error = kind.__new__(kind)
        error.args = ("words",)
        result = raising(error)
        assert isinstance(result.exception, SystemExit), kind
        assert result.exit_code not in (0, 2, 130), kind


def test_several_problems_share_the_line():
    stderr = raising(RepositoryError(PROBLEMS)).stderr
    assert stderr == "tensorq act: a.toml: x: is wrong; mend it | b.toml: too; mend it\n"


def test_what_others_wrote_does_not_reach_the_terminal_as_it_is():
    assert raising(ConfigError("a\x1b[2Jb\rc")).stderr == "tensorq act: a?[2Jb | c\n"


def test_a_file_that_cannot_be_written_is_named():
    result = raising(PermissionError(errno.EACCES, "Permission denied", "out/x.npz"))
    assert result.exit_code == os.EX_IOERR
    assert result.stderr == "tensorq act: out/x.npz: Permission denied\n"


def test_a_full_disk_is_a_line_too():
    result = raising(OSError(errno.ENOSPC, "No space left on device"))
    assert result.exit_code == os.EX_IOERR
    assert result.stderr == "tensorq act: the output cannot be written: No space left on device\n"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_output_that_goes_to_a_full_disk_ends_in_one_line(tmp_path):
    command = [sys.executable, "-m", "tensorq_worker.cli", "models", "check", str(tmp_path)]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == os.EX_IOERR
    assert done.stderr.startswith("tensorq models check: the output cannot be written: ")
    assert done.stderr.count("\n") == 1


def test_ctrl_c_ends_without_a_word():
    result = raising(KeyboardInterrupt())
    assert result.exit_code == 130
    assert result.output == ""


@pytest.mark.parametrize("error", [ZeroDivisionError("bug"), OSError(errno.EBADF, "bug")])
def test_a_bug_keeps_its_traceback(error):
    assert raising(error).exception is error
