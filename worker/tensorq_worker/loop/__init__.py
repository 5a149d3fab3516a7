"""The loop: claims, tiles and finishes, overlapped."""

from tensorq_worker.loop.batch_loop import BatchLoop
from tensorq_worker.loop.stop import Stop

__all__ = ["BatchLoop", "Stop"]
