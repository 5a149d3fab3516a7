"""The worker: an RQ worker that claims many jobs at once and runs them in tiles.

rq worker --worker-class tensorq_worker.BatchWorker MODEL...     with TENSORQ_MODELS=DIR
"""

from tensorq_worker.config import WorkerConfig, load_config
from tensorq_worker.worker import BatchWorker

__all__ = ["BatchWorker", "WorkerConfig", "load_config"]
