"""Residency over ONNX Runtime: the same code on estimates, with no driver to ask."""

from models import catalogue
from tensorq_engines import Fits, Repository, Residency, Residents, create_engine, create_gauge


def test_models_take_turns_under_a_budget_of_estimates(tmp_path):
    settings = "engine = 'onnxruntime'"
    models = {name: (catalogue.affine(), settings) for name in ("a", "b", "c")}
    catalogue.write_repository(tmp_path, models)
    engines = {name: create_engine(Repository(tmp_path).get(name)) for name in models}
    need = engines["a"].footprint
    each = need.weights_bytes + need.arena_bytes
    assert each > 0
    residents = Residents(2 * each + need.io_bytes, 1, shared=False)
    residency = Residency(residents, create_gauge("onnxruntime"))
    for engine in engines.values():
        residency.add(engine)
    for name in "abcabc":
        assert residency.ensure(name) is engines[name]
        assert engines[name].loaded
        seen = residency.check_integrity()
        assert seen.driver_bytes is None
        assert seen.taken_bytes == sum(engine.memory.total_bytes for engine in engines.values()) <= 2 * each
    assert residency.request("c") == Fits()
    assert [model.loads for model in residents] == [2, 2, 2]
    residency.close()
    assert not any(engine.loaded for engine in engines.values())
