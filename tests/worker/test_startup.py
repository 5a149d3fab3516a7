"""What is loaded before the worker says ready, and what keeps it from doing so."""

import threading

import pytest
from redis.exceptions import ConnectionError as RedisConnectionError

from fixtures.rig import NOW, Rig
from models import catalogue
from tensorq.models import ModelState
from tensorq_engines import ResidentState
from tensorq_worker.errors import EagerLoadFailed
from tensorq_worker.startup import Startup

PROFILE = "[[profile]]\nx = { min = [1, 2], opt = [4, 2], max = [8, 2] }\n"
PINNED = "[residency]\npin = true\n"


@pytest.fixture
def start(tmp_path):
    made = []

    def make(preload=True, room=None, **settings):
        models = {name: (catalogue.affine(), NOW + PROFILE + more) for name, more in settings.items()}
        rig = Rig(tmp_path, models, budget_bytes=2**30)
        made.append(rig)
        if room is not None:
            first, *_ = [rig.models[name].engine for name in models]
            residents = rig.pools[first.name]._residents
            residents.budget_bytes = residents.predict(list(models)[:room]).total_bytes
        startup = Startup(rig.broker, rig.models, rig.pools, rig.lanes, rig.stop)
        return rig, lambda: startup.run(preload)

    yield make
    for rig in made:
        rig.close()


def resident(rig):
    return [name for name in rig.models if rig.pools[name][name].state is ResidentState.RESIDENT]


def test_what_fits_is_loaded_in_the_order_served_and_nothing_is_evicted(start):
    rig, run = start(room=2, a="", b="", c="")
    run()
    assert resident(rig) == ["a", "b"]
    assert rig.pools["a"]["a"].evictions == 0


def test_without_preloading_only_those_that_stay_are_loaded(start):
    rig, run = start(preload=False, a="", b=PINNED, c="[residency]\nload = 'eager'\n")
    run()
    assert resident(rig) == ["b", "c"]
    assert all(rig.models[name].info().state is ModelState.READY for name in "bc")


def test_those_that_stay_come_before_those_that_may_go(start):
    rig, run = start(room=1, a="", b=PINNED)
    run()
    assert resident(rig) == ["b"]


def test_a_lazy_model_is_left_for_its_first_job(start):
    rig, run = start(a="[residency]\nload = 'lazy'\n", b="")
    run()
    assert resident(rig) == ["b"]


def test_an_eager_model_that_does_not_load_ends_the_start_and_another_does_not(start):
    rig, run = start(a="", b="[residency]\nload = 'eager'\n")
    for name in "ab":
        assert rig.models[name].engine
    rig.models["a"].engine.source.unlink()
    run()
    assert resident(rig) == ["b"]
    rig, run = start(c="", d="[residency]\nload = 'eager'\n")
    rig.models["d"].engine.source.unlink()
    with pytest.raises(EagerLoadFailed, match=r"model 'd' is to be there from the start .*cannot load"):
        run()


def test_a_redis_that_is_away_keeps_no_model_from_being_loaded(start, caplog):
    rig, run = start(a="")

    def fail(job_id, payload):
        raise RedisConnectionError("away")

    rig.broker.rehearse = fail
    run()
    assert resident(rig) == ["a"]
    assert "not warmed the whole way: Redis: away" in caplog.text


def test_a_redis_that_goes_away_while_a_tile_is_rehearsed_does_not_hold_up_the_start(start):
    rig, run = start(a="")
    away = threading.Event()

    def fail(model, jobs, **counters):
        away.set()
        raise RedisConnectionError("away")

    rig.broker.finish = fail
    starting = threading.Thread(target=run, daemon=True)
    starting.start()
    assert away.wait(10)
    starting.join(10)
    assert not starting.is_alive()
    assert rig.lanes.pending == 0


def test_a_model_is_not_ready_before_it_was_warmed(start):
    rig, run = start(a="")
    states = []
    rehearse = rig.broker.rehearse

    def look(job_id, payload):
        states.append(rig.models["a"].info().state)
        return rehearse(job_id, payload)

    rig.broker.rehearse = look
    run()
    assert set(states) == {ModelState.LOADING}
    assert rig.models["a"].info().state is ModelState.READY
