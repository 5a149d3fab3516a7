"""The chaos run can fail: it is red without the fence or the lease, and its audit sees each damage."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from ops.chaos import models
from ops.chaos.audit import audit
from ops.chaos.faults import plan_faults
from ops.chaos.work import AFFINE, REASONS, Kind, Work, plan_work
from redis import Redis

from fixtures.redis import require_redis_server
from fixtures.workers import environment
from tensorq import keys, wire

ROOT = Path(__file__).parents[2]
WORK = Work("job", 0.0, Kind.INNOCENT, AFFINE, 7, 3, False, "normal", 2, None)
SHORT = ("--minutes", "0.3", "--jobs", "800", "--drain-s", "5")


def run_broken(folder: Path, broken: str) -> dict[str, Any]:
    """The verdict of a red run without the fence or the lease; of the last run, if none was red.

    On a busy machine all pauses may meet workers that hold nothing: such a run had nothing to break.
    """
    out = folder / f"{broken}.json"
    for seed in ("2", "3", "4"):
        command = [
            sys.executable,
            str(ROOT / "ops/chaos/chaos.py"),
            *SHORT,
            "--seed",
            seed,
            "--break",
            broken,
        ]
        run = subprocess.run(
            [*command, "--out", str(out)], env=environment(), capture_output=True, timeout=120
        )
        assert run.returncode in (0, 1), run.stderr.decode()
        if run.returncode == 1:
            break
    verdict: dict[str, Any] = json.loads(out.read_text())["verdict"]
    return verdict


@pytest.mark.integration
@pytest.mark.timeout(400)
def test_a_run_without_the_fence_or_the_lease_is_red(tmp_path: Path) -> None:
    require_redis_server()
    with ThreadPoolExecutor() as pool:
        fence, lease = pool.map(partial(run_broken, tmp_path), ("fence", "lease"))
    assert fence["two_results"] > 0
    assert lease["innocents_failed"] > 0


def store(redis: Redis, outputs: Mapping[str, np.ndarray], **fields: object) -> None:
    redis.hset(keys.job("job"), mapping={"status": "finished", "retries_left": 2} | fields)
    redis.xadd(keys.results("job"), {"type": 1})
    redis.set(keys.result("job"), wire.pack(outputs))


DAMAGES: dict[str, Callable[[Redis], object]] = {
    "lost": lambda redis: redis.delete(keys.job("job")),
    "wrong": lambda redis: redis.set(keys.result("job"), wire.pack({"y": np.zeros((3, 4), np.float32)})),
    "innocents_failed": lambda redis: (
        redis.hset(keys.job("job"), "status", "failed"),
        redis.delete(keys.results("job")),
    ),
    "two_results": lambda redis: redis.xadd(keys.results("job"), {"type": 1}),
    "retries_spent": lambda redis: redis.hset(keys.job("job"), "retries_left", 1),
    "left_over": lambda redis: redis.set(keys.input("job"), b"payload"),
}


@pytest.mark.parametrize("damage", [None, *DAMAGES])
def test_the_audit_names_each_damage_and_nothing_else(redis: Redis, damage: str | None) -> None:
    store(redis, models.expected(WORK, 100))
    if damage is not None:
        DAMAGES[damage](redis)
    verdict = audit(redis, [WORK])
    found = [name for name in verdict.__dataclass_fields__ if getattr(verdict, name)]
    assert found == ([damage] if damage is not None else [])


def test_the_audit_passes_over_what_is_about_to_go_by_itself(redis: Redis) -> None:
    store(redis, models.expected(WORK, 100))
    redis.set(keys.input("rehearsal-1"), b"payload", ex=60)
    assert audit(redis, [WORK]).clean
    redis.set(keys.input("staged"), b"payload", ex=600)
    assert audit(redis, [WORK]).left_over


@pytest.mark.parametrize("kind", REASONS)
def test_poison_must_fail_and_with_its_own_reason(redis: Redis, kind: Kind) -> None:
    work = Work("job", 0.0, kind, AFFINE, 7, 3, False, "normal", 2, None)
    store(redis, models.expected(WORK, 100))
    assert audit(redis, [work]).poison_misjudged
    redis.hset(keys.job("job"), "status", "failed")
    assert audit(redis, [work]).poison_misjudged


def test_a_plan_follows_from_its_seed_and_has_some_of_everything() -> None:
    work = plan_work(5, 2000, 60.0)
    assert work == plan_work(5, 2000, 60.0) != plan_work(6, 2000, 60.0)
    assert {w.kind for w in work} == set(Kind)
    assert sum(w.kind is not Kind.INNOCENT for w in work) == 20
    assert all(any(getattr(w, name) for w in work) for name in ("wide", "retries", "parent"))
    assert {w.priority for w in work} == {"high", "normal", "low"}
    assert [w.at_s for w in work] == sorted(w.at_s for w in work)
    assert plan_faults(5, 60.0, 4, 3.0) == plan_faults(5, 60.0, 4, 3.0)
    contents = {tuple(next(iter(models.tensors(w, 2000).values())).ravel()) for w in work}
    assert len(contents) >= len(work) - sum(w.kind is Kind.KILLS for w in work)
