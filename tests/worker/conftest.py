import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def worker_log() -> Iterator[None]:
    """Lets caplog see the worker's log, which RQ keeps from the root logger once a worker ran here."""
    logger = logging.getLogger("rq.worker")
    before = logger.propagate, logger.level
    logger.propagate = True
    logger.setLevel(logging.NOTSET)
    yield
    logger.propagate, logger.level = before
