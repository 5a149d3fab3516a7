import json
from dataclasses import replace

import pytest
from ops.bench.residency import bench
from ops.bench.residency.compare import Setting, compare
from ops.bench.residency.inputs import Model, budget_for, read
from ops.bench.residency.traffic import TRAFFICS, arrivals

from tensorq_engines import Footprint

MODELS = [Model(f"m{n}", Footprint(10 + n), 5.0, {1: 0.1, 8: 0.4, 32: 1.0}) for n in range(6)]
SMALL = Setting(MODELS, jobs=1500, dwell_floor_s=0.0)


@pytest.mark.parametrize("utilisation", [0.7, None])
def test_round_robin_takes_few_loads_and_keeps_the_bound(utilisation):
    pair = compare(SMALL, "round robin", utilisation)
    assert pair.problems() == []
    assert 6 <= pair.aware.loads <= 0.2 * pair.baseline.loads
    assert pair.aware.jobs_per_s > 2 * pair.baseline.jobs_per_s


def test_without_ageing_the_bound_is_broken_and_said_so():
    problems = compare(replace(SMALL, ageing=False), "round robin", 0.7).problems()
    assert any("ms without a tile, and the bound is" in problem for problem in problems)


def test_lost_jobs_and_too_many_loads_are_said():
    pair = compare(replace(SMALL, jobs=300), "round robin", 0.7)
    lossy = replace(pair, aware=replace(pair.aware, lost=2, loads=pair.baseline.loads))
    assert len(lossy.problems()) == 2
    assert "lost 2 of 300 jobs" in lossy.problems()[0]


@pytest.mark.parametrize("traffic", TRAFFICS)
def test_every_traffic_has_its_jobs_in_order_over_the_time_that_the_utilisation_asks_for(traffic):
    jobs = arrivals(traffic, MODELS, 5000, 1, 0.5)
    assert len(jobs) == 5000
    assert jobs == sorted(jobs, key=lambda job: job.at_ms)
    assert {job.model for job in jobs} == {model.name for model in MODELS}
    work_ms = sum(job.rows for job in jobs) / 32
    assert work_ms / jobs[-1].at_ms == pytest.approx(0.5, rel=0.1)


def test_the_budget_never_holds_one_model_more():
    assert budget_for(MODELS, 3, 1) == 10 + 11 + 12 + 13 - 1


def test_the_bench_prints_both_policies_and_writes_json(tmp_path, capsys):
    file = tmp_path / "out" / "residency.json"
    bench.main(["--jobs", "100", "--json", str(file)])
    printed = capsys.readouterr().out
    assert printed.count("first come") == printed.count("tensorq ") == 2 * len(TRAFFICS)
    pairs = json.loads(file.read_text())["pairs"]
    assert all(pair["aware"]["lost"] == 0 for pair in pairs)


def test_a_broken_bound_is_the_exit_status(tmp_path, monkeypatch):
    models = {
        model.name: {
            "footprint": {"weights_bytes": model.footprint.weights_bytes},
            "load_ms": model.load_ms,
            "tile_ms": dict(model.tile_ms),
        }
        for model in MODELS
    }
    inputs = tmp_path / "inputs.json"
    inputs.write_text(json.dumps({"models": models}))
    assert read(inputs) == MODELS
    arguments = [
        "--jobs",
        "1500",
        "--traffic",
        "round robin",
        "--inputs",
        str(inputs),
        "--dwell-floor-ms",
        "0",
    ]
    assert bench.main(arguments) == 0
    assert bench.main([*arguments, "--without-ageing"]) == 1
