"""The command line as people use it: real Redis, a real worker, real processes."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from fixtures.workers import environment, workers
from models import catalogue

pytestmark = pytest.mark.integration


@pytest.fixture
def shell(redis, redis_server, tmp_path):
    """Runs ``tensorq`` in a folder of its own."""
    env = environment(TENSORQ_REDIS=redis_server.url)

    def start(*arguments: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "tensorq_worker.cli", *arguments]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=env, cwd=tmp_path)

    return start


def ended(process, code=0):
    out, err = process.communicate(timeout=60)
    assert process.returncode == code, out + err
    return out, err


@pytest.fixture
def worker(redis, redis_server, tmp_path_factory):
    settings = "[batching]\nmax_delay_ms = 0\n"
    repository = catalogue.write_repository(
        tmp_path_factory.mktemp("models"),
        {
            "affine": (catalogue.affine(), settings),
            "gather": (catalogue.gather(), settings + "[queue]\nmax_jobs = 4\n"),
            "pair": (catalogue.two_in_two_out(), settings),
        },
    )
    with workers(redis_server.url, repository, tmp_path_factory.mktemp("logs")) as fleet:
        yield fleet.start()


@pytest.mark.usefixtures("worker")
def test_files_become_results(shell, save, tmp_path):
    for n in range(20):
        save(f"in/{n}.npy", np.full((1 + n % 3, 2), n, np.float32))
        save(f"index/{n}.npy", np.int64([99 if n == 7 else n % 5]))

    out, err = ended(shell("submit", "affine", "in/3.npy", "-o", "one"))
    assert (out, err) == ("one/3.npz\n", "")
    np.testing.assert_array_equal(np.load(tmp_path / "one/3.npz")["y"], np.full((1, 2), 7))

    out, err = ended(shell("submit", "affine", "x=in/*.npy", "-o", "many"))
    assert (out, err) == ("", "20 results in many, 0 failed\n")
    for n in range(20):
        found = np.load(tmp_path / f"many/{n}.npz")["y"]
        np.testing.assert_array_equal(found, np.full((1 + n % 3, 2), 2 * n + 1))

    # More jobs than the queue holds, and one that fails.
    out, err = ended(shell("submit", "gather", "index=index/*.npy", "-o", "some"), code=1)
    failure, summary = err.splitlines()
    assert failure.startswith("index/7.npy: job ")
    assert "TileFailed" in failure
    assert summary == "19 results in some, 1 failed"
    assert len(list((tmp_path / "some").iterdir())) == 19

    save("both.npz", a=np.ones((1, 4), np.float32), b=np.ones((1, 4), np.int64))
    ended(shell("submit", "pair", "both.npz", "--cast"))
    with np.load(tmp_path / "out/both.npz") as found:
        assert sorted(found.files) == ["diff", "sum"]

    ids = ended(shell("submit", "affine", "in/1.npy", "in/2.npy", "--no-wait"))[0].split()
    _, err = ended(shell("result", *ids, "-o", "later"))
    assert err == "2 results in later, 0 failed\n"
    assert {path.stem for path in (tmp_path / "later").iterdir()} == set(ids)

    listed = json.loads(ended(shell("models", "list", "--json"))[0])
    assert [(info["name"], info["state"]) for info in listed] == [
        ("affine", "ready"),
        ("gather", "ready"),
        ("pair", "ready"),
    ]


def test_a_job_that_has_not_ended_in_time_is_a_failure(shell, save):
    save("a.npy")
    (job_id,) = ended(shell("submit", "affine", "x=a.npy", "--no-wait"))[0].split()
    out, err = ended(shell("result", job_id, "gone", "--timeout", "0.2"), code=1)
    assert out == ""
    gone, late, summary = err.splitlines()
    assert gone.startswith("job gone is not in Redis")
    assert late == f"job {job_id} has not ended within 0.2 s; ask again later"
    assert summary == "0 results in out, 2 failed"


def test_without_a_worker_it_says_that_it_waits_and_ctrl_c_ends_it_quietly(shell, save):
    save("a.npy")
    process = shell("submit", "affine", "x=a.npy")
    assert "no worker serves 'affine' now; waiting for one" in process.stderr.readline()
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    assert ended(process, code=130) == ("", "")


def test_a_file_in_the_way_of_a_result_is_named(shell, save, tmp_path):
    (tmp_path / "taken").write_text("")
    save("a.npy")
    _, err = ended(shell("submit", "affine", "x=a.npy", "-o", "taken"), code=2)
    assert "'taken' is a file" in err


def test_it_knows_its_version(shell):
    assert ended(shell("--version"))[0].startswith("tensorq, version ")


def test_the_console_script_is_installed():
    script = os.path.join(os.path.dirname(sys.executable), "tensorq")
    done = subprocess.run([script, "-h"], capture_output=True, text=True, check=True)
    assert {"worker", "submit", "result", "models"} <= set(done.stdout.split())
