"""Whether replaying is worth it."""

import pytest

from tensorq_engines.tensorrt.trial import LONG_S, replay_is_slower


class Tile:
    """A tile that takes a known time each way, the first time longer."""

    def __init__(self, replay_us, eager_us, first_us=0.0):
        self.now = 0.0
        self.runs = {"replay": 0, "eager": 0}
        self.us = {"replay": replay_us, "eager": eager_us}
        self.first_us = first_us
        self.queued = []

    def queue(self, kind):
        self.queued.append(kind)

    def wait(self):
        for kind in self.queued:
            extra = 0 if self.runs[kind] else self.first_us
            self.now += (self.us[kind] + extra) / 1e6
            self.runs[kind] += 1
        self.queued.clear()

    def slower(self, rounds=5):
        return replay_is_slower(
            lambda: self.queue("replay"), lambda: self.queue("eager"), self.wait, rounds, lambda: self.now
        )


@pytest.mark.parametrize(
    ("replay_us", "eager_us", "slower"),
    [(100, 90, True), (100, 100, False), (101, 100, False), (60, 90, False)],
)
def test_the_faster_way_wins_and_a_tie_goes_to_the_graph(replay_us, eager_us, slower):
    assert Tile(replay_us, eager_us).slower() is slower


def test_the_first_run_of_each_does_not_count():
    tile = Tile(90, 100, first_us=500)
    assert not tile.slower()
    assert tile.runs == {"replay": 6, "eager": 6}


def test_a_long_tile_is_not_tried():
    tile = Tile(LONG_S * 1e6 + 500, LONG_S * 1e6)
    assert not tile.slower()
    assert tile.runs == {"replay": 1, "eager": 1}
