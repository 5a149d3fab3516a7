"""Arrows run one way: worker -> engines -> the producer's contract; worker -> the producer's contract."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PRODUCER, ENGINES, WORKER = ROOT / "producer", ROOT / "engines", ROOT / "worker"
RUNTIMES = {"onnx", "onnxruntime", "tensorrt", "tensorrt_rtx", "cuda", "torch"}


def imports_of(folder: Path) -> dict[str, set[str]]:
    """Top-level packages that each file imports, wherever in it, by the file's name."""
    found = {}
    for file in folder.rglob("*.py"):
        names = set()
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{file}: relative import"
                names.add(str(node.module))
        found[str(file.relative_to(ROOT))] = {name.partition(".")[0] for name in names}
    return found


@pytest.mark.parametrize(
    ("folder", "forbidden"),
    [
        (PRODUCER, {"tensorq_engines", "tensorq_worker", "pydantic", *RUNTIMES}),
        (ENGINES, {"tensorq_worker", "redis", "rq", "torch"}),
        (WORKER, RUNTIMES),
    ],
    ids=["producer", "engines", "worker"],
)
def test_no_module_imports_against_the_arrows(folder, forbidden):
    found = imports_of(folder)
    assert len(found) > 10
    assert {file: names & forbidden for file, names in found.items() if names & forbidden} == {}


def test_engines_use_only_the_contract_of_the_producer():
    contract = {"tensorq.errors", "tensorq.names", "tensorq.signature", "tensorq.wire"}
    used = set()
    for file in ENGINES.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and str(node.module).partition(".")[0] == "tensorq":
                used.add(node.module)
    assert used <= contract


@pytest.mark.parametrize(
    ("statement", "absent"),
    [
        ("import tensorq", {*RUNTIMES, "pydantic", "tensorq_engines", "tensorq_worker"}),
        ("import tensorq_engines", {*RUNTIMES, "tensorq_worker"}),
        ("import tensorq_worker", RUNTIMES),
        ("from tensorq_worker import BatchWorker", RUNTIMES),
        ("import tensorq_worker.cli", RUNTIMES),
    ],
)
def test_importing_loads_no_runtime(statement, absent):
    code = f"{statement}; import sys; print(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) & absent == set()
