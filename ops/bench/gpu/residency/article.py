"""Article: figures that were published for three models in one service, for comparison.

They come from part 6 of a series in Chinese on TensorRT services (eager, lazy or lru in one process; HTTP and
torch around it). Its GPU is not named. Its MB are MiB: it gives 32 x 128 x 112 x 112 x 2 bytes as 98 MB.
"""

from __future__ import annotations

MODELS = ("tiny_cnn", "mid_cnn", "resnet18")

STRATEGIES = {
    "eager": {
        "startup_s": 2.64,
        "resident_start_mib": 701,
        "resident_hot_mib": 701,
        "first_ms": [19.8, 3.9, 2.7],
        "steady_p50_ms": 2.8,
    },
    "lazy": {
        "startup_s": 2.56,
        "resident_start_mib": 0,
        "resident_hot_mib": 701,
        "first_ms": [111.1, 32.3, 23.7],
    },
    "lru": {
        "budget_mib": 400,
        "startup_s": 2.59,
        "resident_start_mib": 0,
        "resident_hot_mib": 404,
        "first_ms": [111.4, 27.7, 21.2],
        "reload_ms": [12.7, 19.3],
        "reload_request_ms": [15.7, 27.9],
        "steady_p50_ms": 4.9,
    },
}
"""By policy; lists are in the order of `MODELS`, but for reloads, which are the least and the most."""

ROUNDS_MS = {
    "tiny_cnn": [127.5, 16.5, 16.2, 15.7],
    "mid_cnn": [34.6, 27.9, 26.9, 27.6],
    "resnet18": [23.5, 23.6, 23.2, 25.3],
}
"""Requests of four rounds of the three models, lru."""

CONTEXT_MIB = {"tiny_cnn": 296, "mid_cnn": 300, "resnet18": 79}
CONTEXT_MIB_BY_ROWS = {1: 14, 8: 76, 16: 150, 32: 296}
CONTEXT_MIB_BY_SIDE = {64: 26, 112: 88, 224: 296}

TOGETHER = {
    "alone_requests_s": {"tiny_cnn": 247.6, "resnet18": 259.9},
    "together_requests_s": {"tiny_cnn": 130.1, "resnet18": 130.4},
    "sum_of_ratios": 1.03,
}
"""Over HTTP: the GPU idled behind Python, and each model had half of what Python could do."""
