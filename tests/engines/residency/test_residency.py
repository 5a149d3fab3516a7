"""Loads and evictions on their thread, with engines that a test holds back."""

import threading

import pytest

from tensorq_engines import (
    BuildFailed,
    EngineFatal,
    Evict,
    Fits,
    Footprint,
    Later,
    LoadPolicy,
    ModelDoesNotFit,
    ModelLoadFailed,
    Never,
    Residency,
    ResidencyClosed,
    Residents,
    ResidentState,
)

WAIT_S = 5


class TestLoads:
    def test_one_load_serves_all_who_ask_for_it(self, open_pool, in_thread):
        pool = open_pool(a=10)
        pool["a"].may_load.clear()
        outcomes = [in_thread(pool.residency.ensure, "a") for _ in range(4)]
        assert pool["a"].entered.acquire(timeout=WAIT_S)
        assert pool.residency.request("a") == Fits()
        assert pool.residency.use("a") is None
        pool["a"].may_load.set()
        assert [outcome() for outcome in outcomes] == [pool["a"]] * 4
        assert pool["a"].loads == 1
        assert pool["a"].threads == {"tensorq-loader"}

    def test_no_lock_is_held_meanwhile(self, open_pool, in_thread):
        pool = open_pool(a=50, b=50)
        pool.residency.ensure("a")
        pool["b"].may_load.clear()
        pool.residency.request("b")
        assert pool["b"].entered.acquire(timeout=WAIT_S)

        def others():
            assert pool.residency.use("a") is pool["a"]
            pool.residency.done("a")
            pool.residency.check_integrity()
            return pool.residency.request("a"), pool.residency.snapshot("b").state

        assert in_thread(others)() == (Fits(), ResidentState.LOADING)

    def test_another_load_waits_its_turn_and_starts_nothing(self, open_pool):
        pool = open_pool(a=10, b=10)
        pool["a"].may_load.clear()
        assert pool.residency.request("a") == Fits()
        assert pool.residency.request("b") == Later("model 'a' is being loaded")
        pool["a"].may_load.set()
        pool.settled()
        assert pool["b"].loads == 0
        assert pool.residency.request("b") == Fits()
        pool.settled()
        assert pool.residency.use("b") is pool["b"]

    def test_changed_may_ask_again_and_may_fail(self, open_pool, caplog):
        pool = open_pool(a=10, b=10)
        asked = []

        def changed():
            if not asked:
                asked.append(pool.residency.request("b"))
                raise KeyError("the caller's own")
            pool.changes.release()

        pool.residency._changed = changed
        pool.residency.request("a")
        pool.settled()
        assert asked == [Fits()]
        assert pool.residency.use("b") is pool["b"]
        assert "the caller's own" in caplog.text

    def test_there_is_no_thread_before_the_first_request(self, open_pool):
        before = threading.active_count()
        pool = open_pool(a=10)
        pool.residency.snapshot("a")
        assert pool.residency.use("a") is None
        assert threading.active_count() == before


class TestFailedLoads:
    def test_are_told_at_once_cool_down_and_can_be_seen(self, open_pool, caplog):
        pool = open_pool(a=10)
        pool["a"].failure = BuildFailed("model 'a': no kernel")
        for _ in range(3):
            with pytest.raises(BuildFailed, match="no kernel"):
                pool.residency.ensure("a")
        assert pool["a"].loads == 1
        assert pool.residency.request("a") == Later("its last load failed: model 'a': no kernel", 5.0)
        seen = pool.residency.snapshot("a")
        assert (seen.state, seen.failures, seen.retry_in_s) == (ResidentState.FAILED, 1, 5.0)
        assert seen.reason == "model 'a': no kernel"
        assert "no kernel; it is not tried again for 5 s" in caplog.text
        pool.now_s, pool["a"].failure = 5.0, None
        assert pool.residency.ensure("a") is pool["a"]
        seen = pool.residency.snapshot("a")
        assert (seen.state, seen.loads, seen.reason, seen.retry_in_s) == (ResidentState.RESIDENT, 1, "", 0.0)

    def test_of_whatever_kind_become_load_failures(self, open_pool):
        pool = open_pool(a=10)
        pool["a"].failure = MemoryError("no more")
        with pytest.raises(ModelLoadFailed, match=r"'a' cannot be loaded: MemoryError: no more") as caught:
            pool.residency.ensure("a")
        assert isinstance(caught.value.__cause__, MemoryError)

    def test_give_their_memory_back_to_others(self, open_pool):
        pool = open_pool(a=100, b=100)
        pool["a"].failure = ModelLoadFailed("gone")
        with pytest.raises(ModelLoadFailed):
            pool.residency.ensure("a")
        assert pool.residency.ensure("b") is pool["b"]


class TestEvictions:
    def test_run_before_the_load_and_take_the_model_out_of_use_at_once(self, open_pool, caplog):
        pool = open_pool(a=100, b=100)
        pool.residency.ensure("a")
        pool.settled()
        pool["a"].may_close.clear()
        assert pool.residency.request("b") == Evict(("a",))
        assert pool.residency.use("a") is None
        assert pool.residency.snapshot("a").state is ResidentState.EVICTING
        assert pool["b"].loads == 0
        pool["a"].may_close.set()
        pool.settled()
        assert pool.residency.use("b") is pool["b"]
        assert not pool["a"].loaded
        assert "model 'a' was evicted for 'b' in" in caplog.text
        assert "gave 100 bytes back" in caplog.text
        assert "model 'b' was loaded in" in caplog.text

    def test_never_take_a_model_with_a_running_tile(self, open_pool, in_thread):
        pool = open_pool(a=100, b=100)
        pool.residency.ensure("a")
        assert pool.residency.use("a") is pool["a"]
        pool.settled()
        assert isinstance(pool.residency.request("b"), Later)
        waiting = in_thread(pool.residency.ensure, "b")
        assert pool["a"].loaded
        pool.residency.done("a")
        assert waiting() is pool["b"]
        assert not pool["a"].loaded

    def test_wait_for_no_tile_that_ended_while_they_were_asked_for(self, open_pool, in_thread, monkeypatch):
        pool = open_pool(a=100, b=100)
        pool.residency.ensure("a")
        pool.residency.use("a")
        pool.settled()
        request = pool.residency.request

        def slow(*args):
            decision = request(*args)
            if isinstance(decision, Later):
                pool.residency.done("a")
            return decision

        monkeypatch.setattr(pool.residency, "request", slow)
        assert in_thread(pool.residency.ensure, "b")() is pool["b"]

    def test_that_fail_to_close_let_the_load_go_on(self, open_pool, caplog, monkeypatch):
        pool = open_pool(a=100, b=100)
        pool.residency.ensure("a")
        close = pool["a"].close

        def broken():
            close()
            raise OSError("cannot let go")

        monkeypatch.setattr(pool["a"], "close", broken)
        assert pool.residency.ensure("b") is pool["b"]
        assert "cannot let go" in caplog.text
        monkeypatch.undo()

    def test_that_free_too_little_go_on(self, open_pool):
        pool = open_pool(a=50, c=40, b=50)
        pool.residency.ensure("a")
        pool.now_s = 1.0
        pool.residency.ensure("c")
        pool["a"].keeps = 30
        assert pool.residency.request("b") == Evict(("a",))
        assert pool.residency.ensure("b") is pool["b"]
        assert (pool["a"].loaded, pool["c"].loaded) == (False, False)


class TestDriver:
    def test_what_it_keeps_lowers_the_budget_until_it_gives_it_back(self, open_pool):
        pool = open_pool(a=100, b=60)
        pool.residency.ensure("a")
        pool["a"].keeps = 40
        pool.residency.ensure("b")
        seen = pool.residency.check_integrity()
        assert (seen.unaccounted_bytes, seen.taken_bytes, seen.driver_bytes) == (40, 60, 100)
        assert pool.residents.room.limit_bytes == 60
        pool.device.kept = 15
        assert pool.residency.check_integrity().unaccounted_bytes == 15
        assert pool.residency.check_integrity().drift_bytes == 15

    def test_is_not_the_models_where_others_take_memory_before_an_eviction(self, open_pool):
        pool = open_pool(a=100, b=60)
        pool.residency.ensure("a")
        pool.device.other += 500
        pool["a"].keeps = 10
        pool.residency.ensure("b")
        assert pool.residency.check_integrity().unaccounted_bytes == 10

    def test_is_asked_once_more_before_a_model_is_refused_for_it(self, open_pool):
        pool = open_pool(a=100, b=60)
        pool.residency.ensure("a")
        pool["a"].keeps = 40
        pool.residency.ensure("b")
        refused = pool.residency.request("a")
        assert isinstance(refused, Never)
        assert "100 bytes less 40 bytes unaccounted for" in refused.message
        pool.device.kept = 0
        assert pool.residency.ensure("a") is pool["a"]

    def test_is_not_believed_while_a_load_is_under_way(self, open_pool):
        pool = open_pool(a=100, b=60)
        pool.residency.ensure("a")
        pool.settled()
        pool["a"].keeps = 40
        pool["b"].may_load.clear()
        pool.residency.request("b")
        assert pool["b"].entered.acquire(timeout=WAIT_S)
        kept, pool.device.kept = pool.device.kept, 0
        assert pool.residency.check_integrity().unaccounted_bytes == 40
        pool.device.kept = kept
        pool["b"].may_load.set()
        pool.settled()
        pool.device.kept = 0
        assert pool.residency.check_integrity().unaccounted_bytes == 0

    def test_baseline_is_what_it_shows_before_the_first_load_or_when_told(self, open_pool):
        pool = open_pool(a=10)
        pool.residency.ensure("a")
        pool.settled()
        pool.device.other += 500
        assert pool.residency.check_integrity().drift_bytes == 500
        pool.residency.rebase()
        assert pool.residency.check_integrity().drift_bytes == 0


class TestFits:
    def test_an_impossible_one_raises_the_numbers(self, open_pool, caplog):
        pool = open_pool(a=101)
        for _ in range(2):
            with pytest.raises(ModelDoesNotFit, match=r"101 bytes are needed.*budget is 100 bytes.*raise"):
                pool.residency.ensure("a")
        assert "101 bytes" in pool.residency.snapshot("a").reason
        assert caplog.text.count("does not fit") == 1

    def test_a_model_larger_than_predicted_makes_others_leave(self, open_pool):
        pool = open_pool(a=50, b=50)
        pool.residency.ensure("a")
        pool["b"].actual = 60
        assert pool.residency.ensure("b") is pool["b"]
        assert not pool["a"].loaded
        assert pool.residents.charged.weights_bytes == 60
        assert pool.residency.snapshot("b").footprint == Footprint(60)

    def test_a_model_larger_than_the_budget_leaves_itself(self, open_pool):
        pool = open_pool(a=50)
        pool["a"].actual = 120
        with pytest.raises(ModelDoesNotFit, match="120 bytes are needed"):
            pool.residency.ensure("a")
        assert not pool["a"].loaded
        assert isinstance(pool.residency.request("a"), Never)
        assert pool["a"].loads == 1

    def test_a_model_larger_than_predicted_stays_while_only_running_tiles_are_in_the_way(
        self, open_pool, caplog
    ):
        pool = open_pool(a=50, b=50)
        pool.residency.ensure("a")
        pool.residency.use("a")
        pool["b"].actual = 60
        assert pool.residency.ensure("b") is pool["b"]
        assert "takes more than there is" in caplog.text

    def test_eager_models_that_do_not_fit_fail_the_start(self, open_pool):
        pool = open_pool().add(LoadPolicy.EAGER, a=60, b=60)
        pool.residency.ensure("a")
        with pytest.raises(ModelDoesNotFit, match=r"'b' \(eager\).*'a' \(eager\)"):
            pool.residency.ensure("b")


class TestFatal:
    def test_is_kept_and_reaches_every_call(self, open_pool):
        pool = open_pool(a=50, b=50)
        pool.residency.ensure("a")
        pool.residency.use("a")
        pool["b"].failure = EngineFatal("error 700")
        residency = pool.residency
        for call in (
            lambda: residency.ensure("b"),
            lambda: residency.use("a"),
            lambda: residency.request("a"),
            residency.check_integrity,
        ):
            with pytest.raises(EngineFatal, match="error 700"):
                call()
        residency.done("a")
        assert residency.snapshot("a").state is ResidentState.RESIDENT

    def test_a_fault_of_our_own_is_one(self, open_pool, monkeypatch):
        pool = open_pool(a=50)
        monkeypatch.setattr(pool.device, "used_bytes", lambda: 1 / 0)
        with pytest.raises(EngineFatal, match="ZeroDivisionError"):
            pool.residency.ensure("a")


class TestClose:
    def test_waits_for_the_load_and_closes_engines(self, open_pool, in_thread):
        pool = open_pool(a=50, b=50)
        pool.residency.ensure("a")
        pool["b"].may_load.clear()
        waiting = in_thread(pool.residency.ensure, "b")
        assert pool["b"].entered.acquire(timeout=WAIT_S)
        closing = in_thread(pool.residency.close)
        with pytest.raises(ResidencyClosed):
            waiting()
        pool["b"].may_load.set()
        closing()
        pool.residency.close()
        assert not any(engine.loaded for engine in pool.engines.values())
        assert "tensorq-loader" not in [thread.name for thread in threading.enumerate()]
        with pytest.raises(ResidencyClosed):
            pool.residency.request("a")


class TestSetup:
    def test_lanes_that_the_account_does_not_have_are_refused(self, open_pool):
        pool = open_pool(lanes=1)
        pool.residency.attach(object())
        with pytest.raises(ValueError, match="1 lanes"):
            pool.residency.attach(object())

    def test_engines_that_share_no_activations_need_such_an_account(self, open_pool, monkeypatch):
        pool = open_pool(a=10)
        monkeypatch.setattr(type(pool["a"]), "shares_activations", False)
        with pytest.raises(ValueError, match="shared=False"):
            pool.add(b=10)
        Residency(Residents(None, 1, shared=False), pool.device).add(pool["a"])
