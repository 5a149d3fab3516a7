"""The corpus of the fuzzer: every input that was ever worth keeping gives a value or the declared error."""

from __future__ import annotations

import time
import tracemalloc
from pathlib import Path

import pytest
from ops.fuzz import targets
from ops.fuzz.seeds import CORPUS
from ops.fuzz.targets import TARGETS

from tensorq import wire

INPUTS = sorted(CORPUS.glob("*/*"))


@pytest.mark.parametrize("path", INPUTS, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_an_input_gives_a_value_or_the_declared_error_soon_and_in_little_memory(path: Path) -> None:
    data, target = path.read_bytes(), TARGETS[path.parent.name]
    tracemalloc.start()
    started = time.perf_counter()
    try:
        target(data)
        peak_bytes = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert time.perf_counter() - started < 2
    # Of a failure's text up to a MiB is unpacked, and kept a few times over.
    assert peak_bytes < 64 * len(data) + 8 * 2**20


def test_every_target_has_a_corpus() -> None:
    assert {path.parent.name for path in INPUTS} == set(TARGETS)


def test_an_error_that_is_not_declared_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    def careless(payload: bytes) -> None:
        raise KeyError("tensors")

    monkeypatch.setattr(wire, "unpack", careless)
    with pytest.raises(KeyError):
        targets.payload(b"")
