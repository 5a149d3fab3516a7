"""The residency bench over the fake GPU, with the sizes that the plans have on a real one."""

import json
import os
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from ops.bench.gpu.residency import (
    activation,
    articles,
    bench,
    churn,
    cycles,
    inputs,
    timeline,
    together,
)
from ops.bench.gpu.residency.engines import SIX
from ops.bench.gpu.residency.feeding import Rates, covered_s
from ops.bench.gpu.residency.mode import Mode, Order, run_mode
from ops.bench.gpu.residency.reference import Reference
from ops.bench.gpu.residency.report import render
from ops.bench.gpu.residency.sampler import thin
from ops.bench.residency.inputs import read as read_inputs

from fakes.install import install
from fakes.tensorrt import make_plan
from models import catalogue
from tensorq_engines.base.profile import Profile

MB = 10**6
# Weights and activations, MB.
SIZES = {
    "tiny_cnn": (2, 308),
    "mid_cnn": (13, 308),
    "resnet18": (27, 77),
    "rec": (6, 198),
    "det": (4, 296),
    "cls": (4, 7),
    "tiny_cnn-b4": (2, 39),
    "tiny_cnn-b8": (2, 77),
    "tiny_cnn-b16": (2, 154),
    "tiny_cnn-s64": (2, 25),
    "tiny_cnn-s112": (6, 77),
    "resnet18-uint8": (27, 77),
}


def write_plans(folder, names=tuple(SIZES), divisor=1):
    profile = Profile.of(x=([1, 16], [8, 16], [32, 16]))
    for name in names:
        weights, arena = (size * MB // divisor for size in SIZES[name])
        plan = make_plan(catalogue.affine(), (profile,), weights_bytes=weights, activation_bytes=arena)
        (folder / name / ".tensorq").mkdir(parents=True)
        (folder / name / ".tensorq" / "fake.plan").write_bytes(plan)
    return folder


@pytest.fixture
def fake(monkeypatch):
    monkeypatch.setattr(inputs, "measure_costs", partial(inputs.measure_costs, busy_s=0, rounds=2))
    return install(monkeypatch)


@pytest.fixture
def models(fake, tmp_path):
    return write_plans(tmp_path / "models")


@pytest.fixture
def small(fake, tmp_path, monkeypatch):
    """The same models at an eighth of their sizes, which the fake moves faster."""
    monkeypatch.setattr(cycles, "SPARE_BYTES", cycles.SPARE_BYTES // 8)
    return write_plans(tmp_path / "small", divisor=8)


def here(models, mode):
    """Runs a mode in this process, which has the fake."""
    return json.loads(json.dumps(run_mode(Order(str(models), replace(mode, steady=2), 0.0))))


def test_the_articles_modes_keep_their_bounds(models):
    part = articles.measure(models, here)
    assert part["faults"] == []
    modes = part["modes"]
    private, shared = modes[articles.LRU_PRIVATE], modes[articles.LRU_SHARED]
    assert sum(private["evictions"].values()) == 11
    assert all(len(times) == 3 for times in private["reload_request_ms"].values())
    assert shared["loads"] == {"tiny_cnn": 1, "mid_cnn": 1, "resnet18": 1}
    assert shared["reload_request_ms"] == {"tiny_cnn": [], "mid_cnn": [], "resnet18": []}
    assert modes[articles.EAGER_PRIVATE]["resident_start_bytes"] > 700 * MB
    assert modes["lazy, shared"]["resident_start_bytes"] == 0
    assert 350 * MB < modes["lazy, shared"]["resident_hot_bytes"] < articles.BUDGET_BYTES
    two = modes["lru 400 MB, shared, 2 lanes"]
    assert set(two["refused"]) == {"tiny_cnn", "mid_cnn"}
    assert len(two["rounds_ms"]["resnet18"]) == 4
    assert modes["lru 800 MB, shared, 2 lanes"]["refused"] == {}


def test_what_the_articles_part_asserts_can_fail(models):
    modes = {mode.name: here(models, replace(mode, rounds=1)) for mode in articles.MODES[:6]}
    modes[articles.EAGER_PRIVATE]["activation_bytes"]["tiny_cnn"] = 154 * MB
    modes[articles.EAGER_PRIVATE]["charged_bytes"] = 600 * MB
    modes[articles.LRU_SHARED]["evictions"]["mid_cnn"] = 1
    modes[articles.LRU_PRIVATE]["evictions"] = {}
    modes["lazy, shared"] = {"error": "exit status 1"}
    words = [
        "lazy, shared: exit status 1",
        "tiny_cnn's activations are 154 MB",
        "600 MB are charged",
        "1 evictions, expected none",
        "no evictions, expected some",
    ]
    found = articles.faults(modes)
    assert len(found) == len(words)
    assert all(word in fault for word, fault in zip(words, found, strict=True))


def test_a_mode_runs_in_a_process_of_its_own(tmp_path, monkeypatch):
    folder = write_plans(tmp_path / "models", articles.article.MODELS, divisor=8)
    tests = Path(__file__).parents[1]
    paths = [str(tests), *(str(tests.parent / part) for part in ("producer", "engines"))]
    (tmp_path / "sitecustomize.py").write_text(
        f"import sys; sys.path[:0] = {paths}\n"
        "import pytest; from fakes.install import install; install(pytest.MonkeyPatch())\n"
    )
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    found = articles.spawn(folder, Mode("eager", steady=1))
    assert "error" not in found
    assert found["loads"] == {"tiny_cnn": 1, "mid_cnn": 1, "resnet18": 1}
    assert 0 < found["imports_s"] < found["ready_s"] < 60
    assert "no plan of tiny_cnn" in articles.spawn(tmp_path, Mode("lazy"))["error"]


def test_the_timeline_shows_memory_come_and_go(models):
    part = timeline.measure(models, here)
    assert part["faults"] == []
    private, shared = part["private"], part["shared"]
    assert max(size for _, size in private["points"]) > 300 * MB
    assert len(private["marks"]) == len(shared["marks"]) == 12
    assert len(private["points"]) <= 500


def test_activations_by_batch_and_by_side(small):
    part = activation.measure(small)
    assert part["faults"] == []
    assert list(part["by_rows"]) == ["4", "8", "16", "32"]
    assert list(part["by_side"]) == ["64", "112", "224"]
    sizes = part["by_rows"]["32"]
    assert sizes["described_bytes"] == sizes["device_memory_size_bytes"] == sizes["private_growth_bytes"]
    assert 0 <= sizes["shared_growth_bytes"] - sizes["described_bytes"] < 2 << 20


def test_models_are_fed_together_and_alone(small):
    part = together.measure(small, seconds=0.02, rounds=1)
    assert part["without_plan"] == []
    assert part["rows_a_tile"]["rec"] == 32
    assert part["rows_a_tile"]["rec/8"] == 8
    assert set(part["alone"]) == {
        "rec",
        "resnet18-uint8",
        "resnet18",
        "tiny_cnn",
        "rec/8",
        "resnet18-uint8/8",
    }
    pair = part["pairs"]["rec + resnet18-uint8"]
    for way in ("one_lane", "two_lanes"):
        assert pair[way]["total_rows_s"] == pytest.approx(sum(pair[way]["rows_s"].values()), abs=0.2)
        assert 0 < pair[way]["busy"] <= 1
        assert pair[way]["sum_of_ratios"] > 0


def test_a_pair_holds_only_where_both_are_busy_alone():
    def part(busy, two_lanes):
        def rates(rows_s, busy):
            return [Rates(dict(zip("ab", rows_s, strict=False)), busy)]

        samples = {
            ("alone", ("a",)): rates([100.0], busy),
            ("alone", ("b",)): [Rates({"b": 50.0}, 0.9)],
            ("one_lane", ("a", "b")): rates([49.0, 24.5], 0.9),
            ("two_lanes", ("a", "b")): rates(two_lanes, 0.9),
        }
        return together.summarize(samples, {"a": 32, "b": 32})

    good = part(0.85, [60.0, 28.0])
    assert good["pairs"]["a + b"]["one_lane"]["sum_of_ratios"] == 0.98
    assert good["pairs"]["a + b"]["holds"]
    assert good["faults"] == []
    assert "idle alone, one_lane 0.98, two_lanes 1.16" in part(0.75, [60.0, 28.0])["faults"][0]
    assert "a + b: one_lane 0.98, two_lanes 1.04" in part(0.85, [52.0, 26.0])["faults"][0]


def test_spans_that_overlap_count_once():
    assert covered_s([(2.0, 3.0), (0.0, 1.0), (0.5, 1.5), (0.6, 0.7)]) == pytest.approx(2.5)


def test_cycles_keep_the_accounts_together_and_give_the_simulations_inputs(small):
    environment = {"gpu": "Fake GPU", "tensorrt": "8.6.1", "date": "2026-12-01"}
    part = churn.measure(small, environment, churn.Counts(40, 6))
    assert part["faults"] == []
    one, two = part["one_lane"], part["two_lanes"]
    assert (one["cycles"], two["cycles"]) == (40, 6)
    assert sum(one["evictions"].values()) > 5
    assert one["drift_bytes"] == {"least": 0, "median": 0, "most": 0}
    assert part["left_after_closing_all_bytes"] == 0
    assert sum(seen["bit_equal"] for seen in part["outputs"].values()) >= 40 + 12
    assert not any(seen["close"] for seen in part["outputs"].values())
    found = part["residency_inputs"]["models"]
    assert set(found) <= set(SIX)
    assert found
    for model in found.values():
        assert set(model["footprint"]) == {
            "weights_bytes",
            "arena_bytes",
            "io_bytes",
            "pinned_bytes",
            "context_bytes",
        }
        assert set(model["tile_ms"]) == {"1", "8", "32"}
        assert model["load_ms"] == pytest.approx(model["engine_load_ms"] + model["first_tile_ms"], abs=0.02)


def test_cycles_see_wrong_outputs(small, monkeypatch):
    monkeypatch.setattr(Reference, "check", lambda *_: "output 'y' of 8 rows is off by up to 3")
    part = churn.measure(small, {}, churn.Counts(3, 1))
    assert any("off by up to 3" in fault for fault in part["faults"])


def test_cycles_see_memory_that_grows(small, fake, monkeypatch):
    look = cycles.Cycles._look

    def leak(self, **where):
        fake.cuda.runtime.cudaMalloc(4 * MB)
        look(self, **where)

    monkeypatch.setattr(cycles.Cycles, "_look", leak)
    faults = "\n".join(churn.measure(small, {}, churn.Counts(60, 6))["faults"])
    assert "cycles, 1 lane: the accounts disagree after cycle 5: " in faults
    assert "MiB with the same models resident" in faults
    assert "cycles, 1 lane: memory that no model has grew by 206.0 MiB" in faults
    assert "22.9 MiB more are in use after closing all" in faults


def test_cycles_see_loads_that_fail(small, monkeypatch):
    run = cycles.Cycles.run

    def lose_a_plan(self, count):
        (small / "cls" / ".tensorq" / "fake.plan").write_bytes(b"")
        run(self, count)

    monkeypatch.setattr(cycles.Cycles, "run", lose_a_plan)
    part = churn.measure(small, {}, churn.Counts(60, 1))
    assert len(part["one_lane"]["failures"]) == cycles.MOST_FAILURES
    assert "cls: ModelLoadFailed: " in part["one_lane"]["failures"][0]
    assert any(" of 60 were run" in fault for fault in part["faults"])
    assert "cycles, lanes: 2: ModelLoadFailed: " in part["two_lanes"]["error"]
    assert part["residency_inputs"]["models"]


def test_a_reference_tells_equal_near_and_wrong():
    reference = Reference({1: {}}, {1: {"y": np.float32([1, 100])}})
    assert reference.check(1, {"y": np.float32([1, 100])}) == ""
    assert reference.check(1, {"y": np.float32([1, 100.5])}) == ""
    assert "off by up to 2" in reference.check(1, {"y": np.float32([1, 102])})
    assert "off by up to nan" in reference.check(1, {"y": np.float32([1, np.nan])})
    assert (reference.bit_equal, reference.close) == (1, 1)


def test_thinned_points_keep_the_extremes():
    points = [(float(at), 100 + at % 7) for at in range(1000)]
    points[500] = (500.0, 9000)
    kept = thin(points, 100)
    assert len(kept) <= 100
    assert (500.0, 9000) in kept
    assert kept == sorted(kept)
    assert thin(points[:50], 100) == points[:50]


def run_bench(models, *arguments):
    out = models / "out.json"
    status = bench.main(["--models", str(models), "--out", str(out), "--limit-s", "0", *arguments])
    return status, json.loads(out.read_text())


def test_the_bench_runs_all_parts_and_prints_their_tables(small, monkeypatch, capsys):
    monkeypatch.setattr(articles.measure, "__defaults__", (here,))
    monkeypatch.setattr(timeline.measure, "__defaults__", (here,))
    monkeypatch.setattr(together, "LEAST_BUSY", 0.0)
    monkeypatch.setattr(together, "LEAST_SUM", {"one_lane": 0.0, "two_lanes": 0.0})
    arguments = ["--seconds", "0", "--rounds", "1", "--cycles", "20", "--two-lane-cycles", "12"]
    status, found = run_bench(small, *arguments)
    assert [name for name in bench.PARTS if not found[name]] == []
    # The small models fit where the real ones do not.
    assert {fault.partition(":")[0].partition(",")[0] for fault in found["faults"]} == {"articles"}
    assert status == 1
    assert "residency_inputs" not in found["cycles"]
    simulated = read_inputs(small / "out-inputs.json")
    assert {model.name for model in simulated} <= set(SIX)
    assert all(model.ladder == (1, 8, 32) and model.load_ms > 0 for model in simulated)
    assert capsys.readouterr().out.strip() == render(found)


def test_a_part_that_raises_costs_the_others_nothing(small, monkeypatch, capsys):
    assert run_bench(small, "--only", "activation")[0] == 0
    assert "all bounds hold" in capsys.readouterr().out
    monkeypatch.setitem(bench.PARTS, "activation", lambda *_: 1 / 0)
    status, found = run_bench(small, "--only", "activation,sources")
    assert status == 1
    assert found["faults"] == ["activation: ZeroDivisionError: division by zero"]
    assert found["sources"]["find_ms"]["tiny_cnn"]["found"] is False
    with pytest.raises(SystemExit):
        run_bench(small, "--only", "article")
    assert "got article, expected of articles, activation" in capsys.readouterr().err
