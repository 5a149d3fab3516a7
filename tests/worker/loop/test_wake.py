import signal
import threading
import time
from contextlib import suppress
from queue import Empty, SimpleQueue

import pytest

from tensorq_worker.loop.wake import Wake


def test_it_stays_set_until_it_is_cleared():
    wake = Wake()
    assert not wake.wait(0)
    wake.set()
    wake.set()
    assert wake.wait(0)
    assert wake.wait(5)
    wake.clear()
    assert not wake.wait(0)
    assert not wake.wait(-1)


def test_another_thread_ends_the_wait():
    wake = Wake()
    timer = threading.Timer(0.1, wake.set)
    began = time.monotonic()
    timer.start()
    assert wake.wait(10)
    assert time.monotonic() - began < 5
    timer.join()


@pytest.mark.timeout(60)
def test_a_signal_may_come_at_any_moment():
    wake, over = Wake(), threading.Event()
    answered = SimpleQueue[None]()
    answered.put(None)
    heard = 0

    def hear(signum: int, frame: object) -> None:
        nonlocal heard
        heard += 1
        wake.set()
        answered.put(None)

    def send() -> None:
        while not over.is_set():
            # One at a time, or a busy machine nests handlers without end.
            with suppress(Empty):
                answered.get(timeout=0.1)
                signal.pthread_kill(main, signal.SIGUSR1)

    main = threading.main_thread().ident
    before = signal.signal(signal.SIGUSR1, hear)
    thread = threading.Thread(target=send)
    try:
        thread.start()
        give_up = time.monotonic() + 40
        while heard <= 100 and time.monotonic() < give_up:
            wake.clear()
            wake.wait(0)
    finally:
        over.set()
        thread.join()
        signal.signal(signal.SIGUSR1, before)
    assert heard > 100
    # The last one is not lost.
    wake.set()
    assert wake.wait(0)
