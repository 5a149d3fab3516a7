import logging
import time
from types import SimpleNamespace

from tensorq_engines.tensorrt.builder.progress import Progress, progress_monitor, reporting


def test_a_long_build_is_told_now_and_then(caplog):
    caplog.set_level(logging.INFO)
    progress = Progress()
    progress.start("tactics", 40)
    progress.step("tactics", 6)
    with reporting("model 'm'", progress, every_s=0.01):
        deadline = time.monotonic() + 5
        while not caplog.messages and time.monotonic() < deadline:
            time.sleep(0.005)
    assert caplog.messages[0].startswith("model 'm': building since 0 s")
    assert "tactics 7/40" in caplog.messages[0]


def test_a_short_build_is_not(caplog):
    caplog.set_level(logging.INFO)
    with reporting("m", Progress()):
        pass
    assert caplog.messages == []


def test_the_monitor_follows_phases_and_is_left_out_where_there_is_none():
    progress = Progress()
    monitor = progress_monitor(SimpleNamespace(IProgressMonitor=object), progress)
    monitor.phase_start("a", None, 3)
    monitor.phase_start("b", "a", 5)
    assert monitor.step_complete("b", 0) is True
    monitor.step_complete("unknown", 0)
    assert str(progress) == "a 0/3, b 1/5"
    monitor.phase_finish("b")
    assert str(progress) == "a 0/3"
    assert progress_monitor(SimpleNamespace(), progress) is None
