"""What a stock RQ worker calls when it gets one of our jobs: an error that says which worker is needed."""

from __future__ import annotations

from tensorq.errors import ConfigError


def run(model: str) -> None:
    """Fails: the job's tensors are for a tensorq worker.

    Args:
        model: the model that the job is for.

    Raises:
        ConfigError: always.
    """
    raise ConfigError(
        f"this job is for model {model!r} and needs a tensorq worker: start one with `tensorq worker "
        f"--models DIR` or `rq worker --worker-class tensorq_worker.BatchWorker {model}`, then requeue it"
    )
