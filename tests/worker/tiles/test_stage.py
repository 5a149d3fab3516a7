from hypothesis import given
from hypothesis import strategies as st

from fixtures.jobs import empty_run
from tensorq_engines import CostTable
from tensorq_worker.tiles import Stage

LADDER = (1, 8, 32)


def staged(*rows: int) -> tuple[Stage, list]:
    stage, runs = Stage(LADDER), [empty_run(count) for count in rows]
    for run in runs:
        stage.add(run)
    return stage, runs


def spans(parts, runs):
    return [(runs.index(part.run), part.start, part.stop) for part in parts]


def test_rows_leave_in_the_order_they_came():
    stage, runs = staged(2, 3, 4)
    assert spans(stage.take(5), runs) == [(0, 0, 2), (1, 0, 3)]
    assert spans(stage.take(8), runs) == [(2, 0, 4)]
    assert stage.take(8) == []
    assert stage.rows == 0


def test_the_last_job_is_split_where_the_tile_ends():
    stage, runs = staged(2, 10)
    assert spans(stage.take(8), runs) == [(0, 0, 2), (1, 0, 6)]
    assert stage.rows == 4
    assert stage.oldest() is runs[1]
    assert spans(stage.take(8), runs) == [(1, 6, 10)]


def test_a_dropped_job_is_passed_over_wherever_it_stands():
    stage, runs = staged(2, 3, 4)
    runs[0].dropped = runs[1].dropped = True
    assert stage.oldest() is runs[2]
    assert stage.rows == 4
    assert spans(stage.take(3), runs) == [(2, 0, 3)]


def test_the_rest_of_a_job_that_was_dropped_after_its_first_part_is_not_run():
    stage, runs = staged(10, 1)
    stage.take(8)
    runs[0].dropped = True
    assert spans(stage.take(8), runs) == [(1, 0, 1)]
    assert stage.rows == 0


def test_waiting_names_the_jobs_that_have_rows_here():
    stage, runs = staged(2, 3, 4)
    runs[1].dropped = True
    assert stage.waiting() == [runs[0], runs[2]]


def test_an_empty_stage_has_no_oldest():
    stage, runs = staged(1)
    assert stage.oldest() is runs[0]
    runs[0].dropped = True
    assert stage.oldest() is None
    assert stage.rows == 0


def test_plans_anew_when_a_cost_changed_and_only_then():
    costs = CostTable({((3,),): {1: 1.0, 8: 2.0, 32: 4.0}})
    stage = Stage(LADDER, costs, ((3,),))
    first = stage.tiling
    assert first.sizes(32) == (32,)
    costs.put(((4,),), {8: 9.0})
    assert stage.tiling is first
    costs.put(((3,),), {32: 9.0})
    assert stage.tiling.sizes(32) == (8, 8, 8, 8)


@given(
    st.lists(st.tuples(st.integers(1, 70), st.booleans()), max_size=12),
    st.lists(st.integers(1, 32), min_size=1, max_size=40),
)
def test_every_row_of_every_kept_job_leaves_once_and_in_order(jobs, sizes):
    stage, runs = staged(*(rows for rows, _ in jobs))
    for run, (_, dropped) in zip(runs, jobs, strict=True):
        run.dropped = dropped
    left = []
    for size in sizes * 10:
        parts = stage.take(size)
        assert sum(part.rows for part in parts) <= size
        left += [(index, row) for index, start, stop in spans(parts, runs) for row in range(start, stop)]
    kept = [(index, row) for index, (rows, gone) in enumerate(jobs) if not gone for row in range(rows)]
    assert left == kept[: len(left)]
    if not stage.waiting():
        assert left == kept
        assert stage.oldest() is None
        assert stage.rows == 0
