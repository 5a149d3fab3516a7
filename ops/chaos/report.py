"""What a run found, for people and as JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

from ops.chaos.recovery import Loss
from ops.chaos.run import LEASE_S, Outcome, Setting
from ops.chaos.work import REASONS, Kind

SHOWN = 5
VERDICTS = {
    "lost": "lost",
    "wrong": "wrong results",
    "innocents_failed": "innocents failed",
    "two_results": "two results for one job",
    "poison_misjudged": "poison that did not fail with its reason",
    "retries_spent": "innocents whose retries were spent",
    "left_over": "left over in Redis",
}
# From the fault to the last of the jobs given back: the lease, the reapers' rhythm, and a restarted server.
BACK_LIMIT_S = 30.0


def problems(outcome: Outcome) -> list[str]:
    """What makes the run red; nothing after a good one."""
    found = []
    for name, title in VERDICTS.items():
        entries = getattr(outcome.verdict, name)
        if entries:
            found.append(f"{title}: {len(entries)}, such as {'; '.join(entries[:SHOWN])}")
    found += [f"a worker that nobody touched: {text}" for text in outcome.unexpected[:SHOWN]]
    found += [
        f"{loss.worker} was lost and its jobs were not given back within {BACK_LIMIT_S:.0f} s"
        for loss in outcome.losses
        if loss.held is None or (loss.held and (loss.back_s is None or loss.back_s > BACK_LIMIT_S))
    ]
    if not (outcome.maintenance and outcome.rq_info):
        found.append("stock tools did not run beside the workers")
    return found


def print_outcome(setting: Setting, outcome: Outcome) -> None:
    """Prints what happened and what it came to."""
    kinds = Counter(work.kind for work in outcome.planned)
    some = Counter(
        name
        for work in outcome.planned
        for name, has in (("with Retry", work.retries), ("dependents", work.parent), ("large", work.wide))
        if has
    )
    print(f"seed {setting.seed}, {outcome.seconds:.0f} s, lease {LEASE_S} s, up to {setting.slots} workers")
    print(f"jobs: {len(outcome.planned):,}; {_listed(some)}; poison: {_listed(_poison(kinds))}")
    print(f"faults: {_listed(outcome.faults)}; longest outage of Redis {outcome.longest_outage_s:.1f} s")
    print(f"workers ended by: {_listed(outcome.exits)}")
    print(
        f"beside them: {outcome.maintenance:,} rounds of stock maintenance, {outcome.rq_info} of rq info; "
        f"{outcome.submits_repeated} submits repeated ({_listed(outcome.submit_errors) or 'no errors'})"
    )
    print()
    for cause, losses in by_cause(outcome).items():
        print(f"{cause}: {_recovered(losses)}")
    print()
    for name, title in VERDICTS.items():
        print(f"{title + ':':<44}{len(getattr(outcome.verdict, name)):>6}")
    print(f"{'poison failed, each with its own reason:':<44}{_rightly_failed(outcome, kinds):>6}")


def as_json(setting: Setting, outcome: Outcome, machine: dict[str, Any]) -> dict[str, Any]:
    """The same as numbers."""
    kinds = Counter(work.kind for work in outcome.planned)
    return {
        "machine": machine,
        "setting": {**asdict(setting), "lease_s": LEASE_S},
        "seconds": round(outcome.seconds, 1),
        "jobs": {kind.value: count for kind, count in kinds.items()},
        "with_retry": sum(bool(work.retries) for work in outcome.planned),
        "dependents": sum(bool(work.parent) for work in outcome.planned),
        "faults": dict(outcome.faults),
        "workers_ended_by": dict(outcome.exits),
        "stock_maintenance_rounds": outcome.maintenance,
        "rq_info_runs": outcome.rq_info,
        "submits_repeated": outcome.submits_repeated,
        "longest_redis_outage_s": round(outcome.longest_outage_s, 2),
        "recovery_s": {cause: figures(losses) for cause, losses in by_cause(outcome).items()},
        "verdict": {name: len(getattr(outcome.verdict, name)) for name in VERDICTS},
        "poison_failed_rightly": _rightly_failed(outcome, kinds),
        "problems": problems(outcome),
    }


def by_cause(outcome: Outcome) -> dict[str, list[Loss]]:
    """Lost workers by what happened to them."""
    causes = dict.fromkeys(loss.cause for loss in outcome.losses)
    return {cause: [loss for loss in outcome.losses if loss.cause == cause] for cause in causes}


def figures(losses: Sequence[Loss]) -> dict[str, Any]:
    """Seconds until what lost workers held was given back, and until it had ended."""
    with_jobs = [loss for loss in losses if loss.held]
    result: dict[str, Any] = {
        "workers": len(losses),
        "of_them_with_jobs": len(with_jobs),
        "jobs_held": sum(len(loss.held or ()) for loss in losses),
    }
    for name in ("back_s", "done_s"):
        times = [value for loss in with_jobs if (value := getattr(loss, name)) is not None]
        if times:
            result[name] = {"p50": round(median(times), 2), "max": round(max(times), 2)}
    return result


def write(path: Path, content: dict[str, Any]) -> None:
    """Writes the JSON file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def _recovered(losses: Sequence[Loss]) -> str:
    found = figures(losses)
    head = f"{found['workers']}, {found['of_them_with_jobs']} of them with {found['jobs_held']} jobs"
    parts = [
        f"{title} after {found[name]['p50']:.1f} s (p50), {found[name]['max']:.1f} s (max)"
        for name, title in (("back_s", "all given back"), ("done_s", "all done"))
        if name in found
    ]
    return "; ".join([head, *parts])


def _poison(kinds: Counter[Kind]) -> Counter[str]:
    return Counter({kind.value: kinds[kind] for kind in REASONS})


def _rightly_failed(outcome: Outcome, kinds: Counter[Kind]) -> int:
    return sum(kinds[kind] for kind in REASONS) - len(outcome.verdict.poison_misjudged)


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{count} {name}" for name, count in counts.items())
