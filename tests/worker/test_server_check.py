import pytest

from tensorq import keys
from tensorq.errors import RedisUnavailable
from tensorq_worker.server_check import check_server


class Server:
    def __init__(self, version="7.0.15", mode="standalone"):
        self._info = {"redis_version": version, "redis_mode": mode}

    def info(self, section):
        assert section == "server"
        return self._info


@pytest.mark.parametrize("version", ["6.2", "6.2.14", "7.0.15", "8.0.1", "255.255.255"])
def test_a_recent_server_is_accepted(version):
    check_server(Server(version))


@pytest.mark.parametrize("version", ["6.0.16", "5.0.3", "2.8", "?"])
def test_an_old_server_is_refused_with_its_version(version):
    with pytest.raises(RedisUnavailable, match=r"too old: tensorq needs 6\.2"):
        check_server(Server(version))


def test_a_cluster_is_refused_with_what_to_use_instead():
    with pytest.raises(RedisUnavailable, match=r"several slots\. Use a single Redis"):
        check_server(Server(mode="cluster"))


@pytest.mark.parametrize(
    ("rq", "ours", "one_slot"),
    [
        ("{t}:rq", "{t}", True),
        ("a{t}", "b{t}:c", True),
        ("{t}:rq", "{u}", False),
        ("{t}:rq", "t", False),
        ("rq", "tensorq", False),
        ("{}{t}", "{}{t}", False),
        ("{}", "{}", False),
    ],
)
def test_a_cluster_is_accepted_where_all_keys_have_one_hash_tag(monkeypatch, rq, ours, one_slot):
    monkeypatch.setattr(keys, "RQ", rq)
    monkeypatch.setattr(keys, "OURS", ours)
    if one_slot:
        check_server(Server(mode="cluster"))
    else:
        with pytest.raises(RedisUnavailable):
            check_server(Server(mode="cluster"))


@pytest.mark.integration
def test_the_server_of_these_tests_is_accepted(redis):
    check_server(redis)
