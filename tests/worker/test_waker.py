import threading

from redis.exceptions import ConnectionError as RedisConnectionError

from tensorq_worker.waker import Waker


class Stream:
    """A wake stream whose last id cannot be asked for, and that gets one entry."""

    def __init__(self):
        self.asked = []
        self.followed = threading.Event()

    def xrevrange(self, key, count):
        raise RedisConnectionError("away")

    def xread(self, streams, count, block):
        self.asked += streams.values()
        if len(self.asked) > 1:
            self.followed.set()
            threading.Event().wait(0.05)
            return []
        return [(b"tensorq:wake", [(b"7-0", {b"model": b"m"})])]


def test_a_redis_that_goes_away_at_the_start_is_waited_out():
    stream, wake = Stream(), threading.Event()
    waker = Waker(stream, wake)
    waker.start()
    assert wake.wait(5)
    assert stream.followed.wait(5)
    waker.close()
    waker._thread.join(5)
    assert stream.asked[:2] == ["$", "7-0"]
