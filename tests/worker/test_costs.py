import logging
from dataclasses import replace

import pytest

from models import catalogue
from tensorq_engines import EngineOptions, ModelLoadFailed, Repository, create_lane, warm
from tensorq_worker.costs import MOST_MEASURING_S
from tensorq_worker.pools import Pools
from tensorq_worker.served import open_models

ROW = ((2,),)
PROFILE = "[[profile]]\nx = { min = [1, 8], opt = [4, 16], max = [8, 32] }\n"


@pytest.fixture
def serve(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    models = tmp_path / "models"

    def open_one(settings=""):
        if not models.exists():
            catalogue.write_repository(
                models, {"net": (catalogue.affine(), f'engine = "reference"\n{settings}')}
            )
        return open_models(Repository(models), ["net"], EngineOptions(), Pools())["net"]

    return open_one


def kept(tmp_path):
    return sorted(tmp_path.rglob("costs-*.json"))


def test_costs_outlive_the_worker(serve):
    first = serve()
    first.load()
    first.costs.table.put(ROW, {8: 2.0})
    first.close()
    again = serve()
    assert again.costs.table.known == {}
    assert again.engine.identity == first.engine.identity
    assert again.costs.table.known == {ROW: {8: 2.0}}


def test_are_written_only_when_they_changed(serve, tmp_path):
    served = serve()
    served.load()
    served.costs.save()
    assert kept(tmp_path) == []
    served.costs.table.put(ROW, {8: 2.0})
    served.costs.save()
    (file,) = kept(tmp_path)
    file.unlink()
    served.costs.save()
    served.close()
    assert kept(tmp_path) == []
    again = serve()
    again.costs.table.put(ROW, {8: 3.0})
    assert again.engine
    again.close()
    assert kept(tmp_path) == [file]


def test_of_a_plan_that_is_built_later_are_found_after_the_load(serve, monkeypatch):
    first = serve()
    first.load()
    first.costs.table.put(ROW, {8: 2.0})
    first.close()
    later = serve()
    with monkeypatch.context() as patch:
        patch.setattr(type(first.engine), "identity", None)
        assert later.engine
        assert later.costs.table.known == {}
    later.load()
    assert later.costs.table.known == {ROW: {8: 2.0}}


def test_that_cannot_be_kept_cost_no_job_anything(serve, tmp_path, monkeypatch, caplog):
    served = serve()
    served.load()
    (tmp_path / "models" / "net" / ".tensorq").write_text("in the way")
    (tmp_path / "cache").write_text("in the way")
    served.costs.table.put(ROW, {8: 2.0})
    with caplog.at_level(logging.WARNING):
        served.close()
        served.close()
    assert caplog.text.count("costs of tiles are not kept") == 1

    def unreadable(self):
        raise ModelLoadFailed("no file")

    monkeypatch.setattr(type(served.engine), "identity", property(unreadable))
    with caplog.at_level(logging.WARNING):
        serve().load()
    assert "not kept: no file" in caplog.text


@pytest.fixture
def warmed(serve):
    """A loaded model with a profile, a lane, and tiles that were warmed in no time."""
    served = serve(PROFILE)
    engine = served.load()
    with create_lane(engine.kind) as lane:
        yield served, lane, [replace(tile, seconds=0.001) for tile in warm(lane, engine)]
    served.close()


class TestMeasure:
    def test_makes_the_sizes_known_of_shapes_that_were_warmed(self, warmed, monkeypatch):
        served, lane, tiles = warmed
        served.costs.measure(lane, served.engine, tiles)
        known = served.costs.table.known
        assert {shapes: set(sizes) for shapes, sizes in known.items()} == {((16,),): {1, 4, 8}}
        monkeypatch.setattr("tensorq_worker.costs.measure_costs", None)
        served.costs.measure(lane, served.engine, tiles)

    def test_takes_no_longer_than_a_start_may(self, warmed, monkeypatch):
        served, lane, tiles = warmed
        monkeypatch.setattr("tensorq_worker.costs.measure_costs", None)
        slow = [replace(tile, seconds=MOST_MEASURING_S / 50) for tile in tiles]
        served.costs.measure(lane, served.engine, slow)
        assert served.costs.table.known == {}

    def test_a_model_that_fails_on_noise_is_served_all_the_same(self, warmed, monkeypatch, caplog):
        served, lane, tiles = warmed

        def fail(inputs):
            raise ValueError("no such index")

        monkeypatch.setattr(served.engine, "execute", fail)
        with caplog.at_level(logging.WARNING):
            served.costs.measure(lane, served.engine, tiles)
        assert "not measured" in caplog.text
        assert served.costs.table.known == {}
