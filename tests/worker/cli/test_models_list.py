import json
import time

import numpy as np
import pytest

from tensorq import Client, ModelInfo, ModelState, Signature, TensorSpec, models
from tensorq.models import ModelResidency
from tensorq.submission import Limits

pytestmark = pytest.mark.integration

NET = Signature((TensorSpec("x", "float32", ("N", 2)),), (TensorSpec("y", "int64", ("N",)),))


@pytest.fixture
def listing(tensorq, redis, redis_server):
    seen = ModelResidency(
        "lru", False, 3 * 2**20, time.time() - 40, hits=70, loads=2, evictions=1, load_ms=15
    )
    net = ModelInfo("net", NET, (1, 8), "onnxruntime", Limits(100, 2**20), residency=seen)
    models.publish(redis, net, ttl_s=60)
    broken = ModelInfo("broken-model", state=ModelState.FAILED, reason="no memory\x1b[31m\nat all")
    models.publish(redis, broken, ttl_s=60)
    with Client(redis) as client:
        for priority, count in {"high": 1, "normal": 2, "low": 3}.items():
            client.submit_many("net", [np.zeros((1, 2), np.float32)] * count, priority=priority)
    return lambda *arguments: tensorq("models", "list", "--redis", redis_server.url, *arguments)


def test_models_are_listed_in_aligned_columns(listing):
    result = listing()
    assert result.exit_code == 0
    head, broken, net, reason = result.stdout.splitlines()
    assert net.split("  ")[0] == "net"
    for column, cell in (("STATE", "ready"), ("LADDER", "1,8"), ("LIMITS", "100 jobs, 1 MiB")):
        assert net[head.index(column) :].startswith(cell)
    assert net[head.index("HIGH") : head.index("MIB")].split() == ["1", "2", "3"]
    assert net[head.index("MIB") : head.index("LIMITS")].split() == [
        "3",
        "40",
        "s",
        "ago",
        "70",
        "2",
        "1",
        "15",
    ]
    assert broken[head.index("MIB") : head.index("LIMITS")].split() == ["-"] * 6
    assert net.endswith("x: float32[N, 2] -> y: int64[N]")
    assert broken[head.index("STATE") :].startswith("failed")
    assert broken[head.index("SIGNATURE") :] == "unknown"
    assert reason == "broken-model: no memory?[31m | at all"


def test_json_has_all_of_it(listing):
    result = listing("--json")
    broken, net = json.loads(result.stdout)
    assert net["queued"] == {"high": 1, "normal": 2, "low": 3}
    assert (net["name"], net["state"], net["ladder"], net["engine"]) == (
        "net",
        "ready",
        [1, 8],
        "onnxruntime",
    )
    assert net["limits"] == {"max_jobs": 100, "max_bytes": 2**20}
    assert Signature.from_dict(net["signature"]) == NET
    assert broken["signature"] is None
    assert (net["residency"]["loads"], net["residency"]["evictions"], broken["residency"]) == (2, 1, None)


def test_no_models_is_said_on_stderr_and_is_an_empty_list(tensorq, redis, redis_server):
    result = tensorq("models", "list", "--redis", redis_server.url)
    assert (result.exit_code, result.stdout) == (0, "")
    assert "no worker serves a model now" in result.stderr
    assert json.loads(tensorq("models", "list", "--json", "--redis", redis_server.url).stdout) == []
