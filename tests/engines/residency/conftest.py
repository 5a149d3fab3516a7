"""Engines whose loads and closes a test holds, and a driver that gives back what a test says."""

import logging
import threading
from typing import ClassVar

import pytest

from tensorq.signature import Signature, TensorSpec
from tensorq_engines import Engine, EngineMemory, Footprint, LoadPolicy, Residency, Residents

WAIT_S = 5


class Device:
    """A gauge; what is in use besides the engines is ``other``, and ``kept`` is not given back."""

    def __init__(self):
        self.engines, self.other, self.kept = [], 1000, 0

    def used_bytes(self):
        return self.other + self.kept + sum(engine.memory.total_bytes for engine in self.engines)


class Held(Engine):
    """Takes what its footprint says, or ``actual`` where set.

    Attributes:
        may_load: loads wait for it.
        may_close: closes wait for it.
        entered: released by every load and close that begins.
        failure: raised by loads.
        keeps: what the device does not get back at the next close.
    """

    kind: ClassVar[str] = "held"
    shares_activations: ClassVar[bool] = True
    signature = Signature((TensorSpec("x", "float32", ("N",)),), (TensorSpec("y", "float32", ("N",)),), 0)
    profiles = ()
    ladder = (1,)
    footprint = Footprint()
    identity = "held"

    def __init__(self, name, weights, device):
        super().__init__(name)
        self.footprint = Footprint(weights)
        self.device = device
        self.may_load, self.may_close = threading.Event(), threading.Event()
        self.may_load.set()
        self.may_close.set()
        self.entered = threading.Semaphore(0)
        self.failure, self.actual, self.keeps = None, None, 0
        self.is_loaded, self.loads, self.threads = False, 0, set()
        device.engines.append(self)

    @property
    def loaded(self):
        return self.is_loaded

    @property
    def memory(self):
        if not self.is_loaded:
            return EngineMemory()
        return EngineMemory(self.footprint.weights_bytes if self.actual is None else self.actual)

    def load(self):
        self.loads += 1
        self.threads.add(threading.current_thread().name)
        self.entered.release()
        assert self.may_load.wait(WAIT_S)
        if self.failure is not None:
            raise self.failure
        self.is_loaded = True

    def close(self):
        self.entered.release()
        assert self.may_close.wait(WAIT_S)
        if self.is_loaded:
            self.device.kept += self.keeps
        self.is_loaded = False


class Pool:
    """A residency of `Held` engines.

    Attributes:
        now_s: what its clock shows.
        changes: released each time that it calls ``changed``.
    """

    def __init__(self, budget, lanes):
        self.now_s = 0.0
        self.device, self.changes = Device(), threading.Semaphore(0)
        self.residents = Residents(budget, lanes)
        self.residency = Residency(
            self.residents, self.device, clock=lambda: self.now_s, changed=self.changes.release
        )
        self.engines = {}

    def add(self, policy=LoadPolicy.LRU, pinned=False, **weights):
        for name, size in weights.items():
            self.engines[name] = Held(name, size, self.device)
            self.residency.add(self.engines[name], policy, pinned)
        return self

    def __getitem__(self, name):
        return self.engines[name]

    def settled(self):
        """Waits for the end of what was requested."""
        assert self.changes.acquire(timeout=WAIT_S)


@pytest.fixture
def open_pool(caplog):
    """Opens pools and closes them at the end, with nothing held back any more."""
    caplog.set_level(logging.INFO, "tensorq_engines")
    pools = []

    def make(budget=100, lanes=1, **weights):
        pools.append(Pool(budget, lanes))
        return pools[-1].add(**weights)

    yield make
    for pool in pools:
        for engine in pool.engines.values():
            engine.may_load.set()
            engine.may_close.set()
        pool.residency.close()


@pytest.fixture
def in_thread():
    """Runs calls on threads of their own; each gives a function that waits for its result or its error."""
    threads = []

    def start(call, *args):
        result = []

        def run():
            try:
                result.append((call(*args), None))
            except Exception as exc:
                result.append((None, exc))

        thread = threading.Thread(target=run)
        thread.start()
        threads.append(thread)

        def outcome():
            thread.join(WAIT_S)
            assert result, "it does not return"
            value, error = result[0]
            if error is not None:
                raise error
            return value

        return outcome

    yield start
    for thread in threads:
        thread.join(WAIT_S)
        assert not thread.is_alive()
