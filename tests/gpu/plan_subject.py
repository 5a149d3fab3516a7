"""The plans as the contract of engines sees them: what is right is what an eager lane of their own gives."""

from contract.subject import Case, Subject
from gpu.tiles import shapes, tile
from tensorq_engines.tensorrt.lane import TensorRtLane


class PlanSubject(Subject):
    """Plans by name.

    Args:
        open_model: returns a loaded engine.
        eager: a lane without graphs and without shared memory.
    """

    kind = "tensorrt"

    def __init__(self, open_model, eager):
        self._open = open_model
        self._eager = eager

    def plain(self):
        case = self._case("tiny", 8, ())
        outside = shapes(case.engine, 33)
        return Case(case.engine, 8, case.make, case.want, outside, r"33, 3.*1\.\.32.*widen")

    def slow(self):
        return self._case("det", 4, (960, 960))

    def new_lane(self, slot_count=2):
        return TensorRtLane(slot_count)

    def _case(self, name, rows, free):
        engine = self._open(name)
        return Case(
            engine,
            rows,
            lambda rows, seed: tile(engine, rows, free, seed=seed),
            lambda inputs: self._eager.run(engine, inputs),
        )
