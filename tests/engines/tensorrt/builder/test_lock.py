import subprocess
import sys
import threading
import time

import pytest

from tensorq_engines.tensorrt.builder import lock
from tensorq_engines.tensorrt.builder.cache import cache_folders
from tensorq_engines.tensorrt.builder.lock import build_lock
from tensorq_engines.tensorrt.builder.order import place_order

BUILD = """
import logging, sys
from pathlib import Path
from tensorq_engines import Repository
from tensorq_engines.tensorrt import flavour
from tensorq_engines.tensorrt.builder import find_or_build
logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stdout)
root = Path(sys.argv[1])
print(find_or_build(Repository(root.parent).get(root.name), flavour.find("tensorrt_rtx"), None).path)
"""


def test_two_processes_that_want_one_plan_make_one_build(write, flavour):
    entry = write()
    folder = cache_folders(entry.folder)[0]
    folder.mkdir()
    held = folder / f"{place_order(entry, flavour, None).recipe.file_name}.lock"
    command = [sys.executable, "-c", BUILD, str(entry.folder)]
    with build_lock(held, "test"):
        workers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
        first = [worker.stdout.readline() for worker in workers]
    rest = [worker.communicate(timeout=60)[0] for worker in workers]
    assert all("another worker is building it" in line for line in first)
    assert [worker.returncode for worker in workers] == [0, 0]
    assert sum(text.count("built in") for text in rest) == 1
    assert len({text.splitlines()[-1] for text in rest}) == 1


def test_threads_take_turns_and_a_failure_gives_the_lock_up(tmp_path, monkeypatch):
    monkeypatch.setattr(lock, "POLL_S", 0.005)
    path, inside, seen = tmp_path / "lock", [], []

    def work():
        with build_lock(path, "m"):
            inside.append(1)
            time.sleep(0.01)
            seen.append(len(inside))
            inside.pop()

    with pytest.raises(ValueError, match="stop"), build_lock(path, "m"):
        raise ValueError("stop")
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [1, 1, 1, 1]
