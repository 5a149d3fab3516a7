"""Device memory of all plans resident at once, on one lane."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from ops.bench.gpu.workload import Workload, lane

from tensorq_engines.tensorrt.cuda import memory
from tensorq_engines.tensorrt.options import ArenaKind

MIB = 1024 * 1024


def resident(names: list[str], folder: Path, arena: ArenaKind) -> dict[str, Any]:
    """MiB taken on the device, model by model: engine, then the lane's growth for its largest tile."""
    steps = {}
    before = last = memory.free_and_total()[0]
    with lane(arena=arena) as one:
        works = []
        for name in names:
            work = Workload.load(name, folder)
            works.append(work)
            loaded = memory.free_and_total()[0]
            largest = {item.name: np.zeros(item.max, np.float32) for item in work.engine.profiles[0]}
            for _ in range(2):
                one.run(work.engine, largest)
            now = memory.free_and_total()[0]
            steps[name] = {"engine": _mib(last - loaded), "lane": _mib(loaded - now)}
            last = now
        taken, lane_memory = before - last, one.memory
        footprints = [work.engine.footprint for work in works]
        for work in works:
            work.engine.close()
    engines = sum(step["engine"] for step in steps.values())
    largest_mib = _mib(max(item.arena_bytes for item in footprints))
    wanted = engines + largest_mib + _mib(lane_memory.io_bytes)
    return {
        "taken_mib": _mib(taken),
        "engines_mib": round(engines, 1),
        "largest_activation_mib": largest_mib,
        "all_activations_mib": _mib(sum(item.arena_bytes for item in footprints)),
        "device_io_mib": _mib(lane_memory.io_bytes),
        "pinned_mib": _mib(lane_memory.pinned_bytes),
        "ratio_to_weights_activation_staging": round(_mib(taken) / wanted, 3),
        "steps_mib": steps,
        "left_after_close_mib": _mib(before - memory.free_and_total()[0]),
    }


def _mib(size: int) -> float:
    return round(size / MIB, 1)
