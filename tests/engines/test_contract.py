"""The contract of engines and lanes, for every kind that runs without a GPU; TensorRT's is a fake."""

from contract.suite import *  # noqa: F403
