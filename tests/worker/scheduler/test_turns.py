from tensorq_worker.scheduler import Turns


def test_a_queue_waits_from_when_it_has_rows_or_had_a_tile_until_it_is_empty():
    turns = Turns()
    assert turns.unserved_ms("a", 5.0) == 0.0
    turns.note(["a"], 10.0)
    turns.note(["a", "b"], 12.0)
    assert (turns.unserved_ms("a", 15.0), turns.unserved_ms("b", 15.0)) == (5.0, 3.0)
    turns.served("a", 16.0)
    assert turns.unserved_ms("a", 18.0) == 2.0
    turns.note(["b"], 20.0)
    turns.note(["a", "b"], 30.0)
    assert (turns.unserved_ms("a", 31.0), turns.unserved_ms("b", 31.0)) == (1.0, 19.0)
