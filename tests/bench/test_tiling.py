import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ops.bench.tiling import bench, compare
from ops.bench.tiling.policies import pad_up, trim_to_preferred

LADDER = (1, 8, 32)
ladders = st.sets(st.integers(1, 40), min_size=1, max_size=4).map(sorted)


@pytest.mark.parametrize(
    ("rows", "padded", "trimmed"),
    [
        (1, (1,), (1,)),
        (5, (8,), (1,) * 5),
        (9, (32,), (8, 1)),
        (33, (32, 1), (32, 1)),
        (47, (32, 32), (32, 8) + (1,) * 7),
    ],
)
def test_the_simple_ways_tile_as_they_are_known_to(rows, padded, trimmed):
    assert pad_up(rows, LADDER) == padded
    assert trim_to_preferred(rows, LADDER) == trimmed


@given(st.integers(1, 300), ladders)
def test_the_simple_ways_cover_the_rows_without_a_tile_to_spare(rows, ladder):
    for way in (pad_up, trim_to_preferred):
        sizes = way(rows, ladder)
        assert sum(sizes) >= rows > sum(sizes[:-1])


@given(st.dictionaries(st.integers(1, 30), st.floats(0.1, 9), min_size=1, max_size=4))
def test_the_planner_is_never_dearer_than_the_others(costs):
    assert [one.faults for one in compare.compare(costs, 60)] == [[]] * 60


def write(folder, costs):
    data = {"environment": {"date": "2026-12-01"}, "costs_ms": {"net": {"3x8": costs}}}
    (folder / "h200-costs-2026-12-01.json").write_text(json.dumps(data))


def test_the_bench_prints_a_table_of_the_files_there_are(tmp_path, capsys):
    write(tmp_path, {"1": 0.1, "8": 0.2, "32": 0.9})
    assert bench.main([str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert "h200-costs-2026-12-01.json" in out
    assert "net    3x8  1:0.100 8:0.200 32:0.900" in out


def test_a_planner_that_is_dearer_fails_it(tmp_path, capsys, monkeypatch):
    write(tmp_path, {"1": 0.1, "8": 0.2, "32": 0.9})
    monkeypatch.setattr(compare.Tiling, "sizes", lambda self, rows: pad_up(rows, self.ladder))
    assert bench.main([str(tmp_path), "--rows", "9"]) == 1
    assert "net 3x8 9 rows: 0.9000 ms, dearer than brute force" in capsys.readouterr().err


def test_without_cost_tables_takes_the_tile_times_of_the_lane_bench(tmp_path, capsys):
    with pytest.raises(SystemExit):
        bench.main([str(tmp_path)])
    assert "ops/bench/gpu/costs.py" in capsys.readouterr().err
    lanes = {"net_graph_against_eager": {"1": {"lane_us": 100}, "8": {"lane_us": 300}}, "other": {}}
    (tmp_path / "h200-lanes-2026-12-01.json").write_text(json.dumps(lanes))
    assert bench.main([str(tmp_path)]) == 0
    assert "1:0.100 8:0.300" in capsys.readouterr().out
