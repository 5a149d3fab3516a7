"""The bench of tiles' costs over the fake GPU, whose clock counts steps: a tile takes four, a mark one."""

import json
from functools import partial

import pytest
from ops.bench.gpu import costs

from fakes.install import install
from fakes.tensorrt import make_plan
from models import catalogue
from tensorq_engines.base.profile import Profile


@pytest.fixture
def plans(monkeypatch, tmp_path):
    fake = install(monkeypatch)
    fake.cuda.clock = lambda: fake.cuda.steps / 1000
    monkeypatch.setattr(costs, "measure_costs", partial(costs.measure_costs, busy_s=0))
    profile = Profile.of(x=([1, 4], [8, 16], [32, 1000]))
    for name in ("rec", "tiny"):
        (tmp_path / f"{name}.plan").write_bytes(make_plan(catalogue.affine(), (profile,)))
    return tmp_path


def test_measures_tables_and_runs_the_tilings(plans, capsys):
    out = plans / "h200-costs-2026-12-01.json"
    arguments = ["--plans", str(plans), "--out", str(out), "--rows", "3", "9", "--budget-s", "0.001"]
    assert costs.main(arguments) == 0
    found = json.loads(out.read_text())
    assert found["environment"]["gpu"] == "Fake GPU"
    assert found["costs_ms"]["tiny"] == {"16": {"1": 4, "8": 4, "32": 4}}
    assert list(found["costs_ms"]["rec"]) == ["160", "320", "640", "960"]
    ways = found["executed"]["rec"]["960"]["9"]
    assert ways["planner"] == {"sizes": [32], "cost_ms": 4, "span_ms": 4, "busy_ms": 4}
    assert ways["trim"] == {"sizes": [8, 1], "cost_ms": 8, "span_ms": 9, "busy_ms": 8}


def test_a_tiling_that_takes_longer_than_a_simple_one_fails_it(plans, capsys, monkeypatch):
    monkeypatch.setattr("ops.bench.gpu.tilings.Tiling.sizes", lambda self, rows: (1,) * rows)
    assert costs.main(["--plans", str(plans), "--models", "tiny", "--rows", "5", "--budget-s", "0.001"]) == 1
    captured = capsys.readouterr()
    assert "tiny 16, 5 rows: 6.000 times the better" in captured.err
    assert json.loads(captured.out)["costs_ms"]


def test_a_folder_without_plans_is_refused(tmp_path, capsys):
    with pytest.raises(SystemExit):
        costs.main(["--plans", str(tmp_path)])
    assert "has no plan of resnet18, rec" in capsys.readouterr().err
