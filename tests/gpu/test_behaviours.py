"""What the fake does is what TensorRT does; see README.md for what was never provoked."""

import json
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from gpu.tiles import shapes, tile
from tensorq_engines import ModelLoadFailed
from tensorq_engines.tensorrt.context import Refused
from tensorq_engines.tensorrt.cuda.graph import CaptureFailed, capture
from tensorq_engines.tensorrt.engine import TensorRtEngine


def _seat(lane, engine):
    lane.run(engine, tile(engine, 1))
    return lane._seats[engine]


def _context(lane, engine):
    return _seat(lane, engine)._contexts[0]


def test_a_shape_outside_the_profile_returns_false_and_logs(open_model, lane, fact):
    engine = open_model("tiny")
    with pytest.raises(Refused, match="profile") as caught:
        _context(lane, engine).set_shapes({engine.signature.inputs[0].name: (33, 3, 224, 224)})
    fact(words=str(caught.value))


@pytest.mark.parametrize("damage", ["garbage", "cut", "flipped"])
def test_bytes_that_are_no_plan_return_none_and_log(plans, tmp_path, damage, fact):
    data = (plans / "tiny.plan").read_bytes()
    if damage == "garbage":
        data = b"not a plan at all" * 100
    elif damage == "cut":
        data = data[: len(data) // 2]
    else:
        data = data[:8] + bytes([data[8] ^ 0xFF]) + data[9:]
    (tmp_path / "model.plan").write_bytes(data)
    with pytest.raises(ModelLoadFailed, match=r"model 'm'.*tensorrt 8") as caught:
        TensorRtEngine("m", tmp_path / "model.plan").load()
    fact(words=str(caught.value))


def test_a_context_whose_shapes_changed_since_its_last_run_cannot_be_captured(open_model, open_lane, fact):
    """Why a capture follows an eager run of just its shapes."""
    engine, lane = open_model("rec"), open_lane(graphs=False)
    context, stream = _context(lane, engine), lane._device.stream
    lane.run(engine, tile(engine, 8))
    context.set_shapes(shapes(engine, 8, (200,)))
    assert not context.settled
    with pytest.raises(CaptureFailed) as caught:
        capture(stream, lambda: _enqueue(context))
    fact(words=str(caught.value))
    context.enqueue()
    stream.synchronize()
    assert context.settled
    graph = capture(stream, lambda: _enqueue(context))
    fact(nodes=graph.nodes)
    graph.launch(stream)
    stream.synchronize()
    graph.close()


def test_a_change_of_addresses_alone_can_or_cannot_be_captured(open_model, open_lane, fact):
    engine, lane = open_model("rec"), open_lane(graphs=False)
    context, device = _context(lane, engine), lane._device
    lane.run(engine, tile(engine, 8))
    form = next(form for form in lane._seats[engine]._forms.values() if form.shapes == shapes(engine, 8))
    address = device.outputs_address(form)
    context.set_addresses({engine.signature.outputs[0].name: address + 512})
    assert not context.settled
    try:
        capture(device.stream, lambda: _enqueue(context)).close()
        fact(addresses="captured")
    except CaptureFailed as exc:
        fact(addresses=str(exc))
    lane.run(engine, tile(engine, 8))


def _enqueue(context):
    try:
        context.enqueue()
    except Refused as exc:
        raise CaptureFailed("refused", str(exc)) from exc


def test_an_unaligned_address_is_taken_or_refused(open_model, lane, fact):
    engine = open_model("tiny")
    context = _context(lane, engine)
    try:
        context.set_addresses({engine.signature.inputs[0].name: lane._device.io.address + 4})
        fact(unaligned="taken")
    except Refused as exc:
        fact(unaligned=str(exc))


def test_an_error_that_sticks_is_fatal_everywhere_and_nothing_is_torn_down(plans, fact):
    script = Path(__file__).with_name("sticky.py")
    command = [sys.executable, str(script), str(plans / "tiny.plan")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    fact(rc=done.returncode, out=done.stdout[-2000:], err=done.stderr[-2000:])
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert said.pop("closed")
    how = said.pop("how")
    assert said.keys() & {"submit", "wait"}
    assert {"acquire", "submit on the other lane", "load"} <= said.keys()
    for what, words in said.items():
        assert re.search(r"returned 7\d\d .*restart the process", words), (how, what, words)


def test_a_process_that_ends_without_closing_ends_well(plans, fact):
    script = textwrap.dedent(
        """
        import sys
        sys.path[:0] = {path!r}
        from pathlib import Path
        from gpu.tiles import shapes, tile
        from tensorq_engines.tensorrt.engine import TensorRtEngine
        from tensorq_engines.tensorrt.lane import TensorRtLane
        engine, lane = TensorRtEngine("tiny", Path({plan!r})), TensorRtLane(2)
        engine.load()
        for _ in range(3):
            lane.run(engine, tile(engine, 8))
        print("ending")
        """
    ).format(path=sys.path, plan=str(plans / "tiny.plan"))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=100)
    fact(rc=done.returncode, err=done.stderr[-2000:])
    assert done.returncode == 0, done.stderr
