"""Rows of any length through a real worker whose model pads them to a few."""

import numpy as np
import pytest

from fixtures.workers import workers
from models import catalogue
from tensorq import Client, JobFailed

pytestmark = pytest.mark.integration

PLAIN = 'engine = "onnxruntime"\n[batching]\nmax_delay_ms = 0\n'
BUCKETS = "[buckets.W]\nlengths = [160, 320]\ncrop = { y = { axis = 2, scale = 0.5 } }\n"


def test_results_equal_those_without_buckets(redis, redis_server, tmp_path_factory):
    models = {
        "plain": (catalogue.convolution(), PLAIN),
        "padded": (catalogue.convolution(), PLAIN + BUCKETS),
    }
    repository = catalogue.write_repository(tmp_path_factory.mktemp("models"), models)
    rng = np.random.default_rng(1)
    inputs = [
        {"x": rng.standard_normal((1 + n % 3, 3, int(width)), np.float32)}
        for n, width in enumerate(rng.integers(1, 321, 60))
    ]
    with workers(redis_server.url, repository, tmp_path_factory.mktemp("logs")) as fleet:
        fleet.start()
        client = Client(redis_server.url)
        plain, padded = (client.gather(client.submit_many(name, inputs), timeout=30) for name in models)
        for one, other in zip(plain, padded, strict=True):
            np.testing.assert_allclose(other["y"], one["y"], rtol=1e-4, atol=1e-5)
        long = client.submit("padded", {"x": np.zeros((1, 3, 321), np.float32)})
        with pytest.raises(JobFailed, match=r"321 long on axis 2 .*the largest bucket is 320"):
            long.result(timeout=30)
