import logging

import pytest

from models import catalogue
from tensorq_engines import EngineOptions, ModelLoadFailed, Repository
from tensorq_worker.served import open_models

ROW = ((2,),)


@pytest.fixture
def serve(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    models = tmp_path / "models"
    catalogue.write_repository(models, {"net": (catalogue.affine(), 'engine = "reference"\n')})
    return lambda: open_models(Repository(models), ["net"], EngineOptions())["net"]


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
    (tmp_path / "models" / "net" / ".tensorq").write_text("in the way")
    (tmp_path / "cache").write_text("in the way")
    served.load()
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
