"""RQ's own handlers, for everything unusual: fenced, and off the hot path."""

from tensorq_worker.redisrq.slow_path import SlowPath

__all__ = ["SlowPath"]
