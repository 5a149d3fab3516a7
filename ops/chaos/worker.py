"""Runs tensorq's command line with slow and deadly tiles: ``python ops/chaos/worker.py worker ...``.

The product knows nothing of this. CHAOS_TILE_S: how long every tile takes. CHAOS_BREAK takes a protection
away, so that a run shows what it is for, and that it would notice:

fence: results are stored whoever holds the job, and a worker does not let go of what it lost.
lease: scores in RQ's started registry are plain, so that stock cleanup sees the leases of dead workers lapse.
"""

from __future__ import annotations

import hashlib
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from ops.chaos.models import DEADLY

from tensorq import keys
from tensorq_engines.onnxruntime.engine import OnnxRuntimeEngine
from tensorq_worker.broker import broker
from tensorq_worker.cli import main
from tensorq_worker.leases import Leases

BREAKS = ("fence", "lease")
FENCE = "if not held[member] then"


def slow_and_deadly() -> None:
    execute = OnnxRuntimeEngine.execute
    tile_s = float(os.environ["CHAOS_TILE_S"])

    def act(self: Any, inputs: Any) -> Any:
        if any((array == DEADLY).any() for array in inputs.values()):
            os.kill(os.getpid(), signal.SIGSEGV)
        time.sleep(tile_s)
        return execute(self, inputs)

    OnnxRuntimeEngine.execute = act  # type: ignore[method-assign]


def break_protection(what: str) -> None:
    if what == "lease":
        keys.LEASE_OFFSET = 0
    elif what == "fence":
        script = broker.FINISH
        if script.source.count(FENCE) != 1:
            raise SystemExit(f"finish.lua has no line {FENCE!r} any more: put the fence's new form here")
        script.source = script.source.replace(FENCE, "if false then")
        Leases.drop = lambda self, jobs: None  # type: ignore[method-assign]
        script.sha = hashlib.sha1(script.source.encode(), usedforsecurity=False).hexdigest()
    elif what:
        raise SystemExit(f"CHAOS_BREAK={what!r}: expected one of {', '.join(BREAKS)}")


if __name__ == "__main__":
    slow_and_deadly()
    break_protection(os.environ.get("CHAOS_BREAK", ""))
    main()
