"""tensorq: submit tensors to models on a batching GPU worker, and get the results.

import tensorq

with tensorq.Client("redis://localhost:6379") as client:
    job = client.submit("ocr-rec", {"x": array})
    outputs = job.result(timeout=60)
"""

from tensorq.client import Client
from tensorq.errors import (
    ConfigError,
    InputError,
    JobCancelled,
    JobError,
    JobExpired,
    JobFailed,
    QueueFull,
    RedisUnavailable,
    ResultTimeout,
    TensorqError,
    UnknownModel,
    WireError,
)
from tensorq.job import Job
from tensorq.models import ModelInfo, ModelResidency, ModelState
from tensorq.names import Priority
from tensorq.signature import Signature, TensorSpec
from tensorq.status import Status
from tensorq.submission import Limits

__all__ = [
    # submitting and waiting
    "Client",
    "Job",
    "Limits",
    "Priority",
    "Status",
    # models
    "ModelInfo",
    "ModelResidency",
    "ModelState",
    "Signature",
    "TensorSpec",
    # errors
    "TensorqError",
    "ConfigError",
    "InputError",
    "JobCancelled",
    "JobError",
    "JobExpired",
    "JobFailed",
    "QueueFull",
    "RedisUnavailable",
    "ResultTimeout",
    "UnknownModel",
    "WireError",
]
