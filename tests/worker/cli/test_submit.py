"""What ``tensorq submit`` refuses before anything is submitted."""

import numpy as np
import pytest

pytestmark = pytest.mark.integration

ARRAY = np.float32([[1, 2]])


@pytest.mark.parametrize("out", ["d", "link", "d/../d"])
def test_a_result_does_not_take_the_place_of_its_input(tensorq, save, redis, redis_server, tmp_path, out):
    path = save("d/x.npz", x=ARRAY)
    before = path.read_bytes()
    (tmp_path / "link").symlink_to("d")
    result = tensorq("submit", "net", "d/x.npz", "-o", out, "--redis", redis_server.url)
    assert result.exit_code == 2, result.output
    assert "would overwrite the input d/x.npz; write results elsewhere, with -o DIR" in result.stderr
    assert path.read_bytes() == before
    assert redis.keys() == []


def test_nor_that_of_another_jobs_input(tensorq, save, redis, redis_server):
    save("in/x.npz", x=ARRAY)
    save("in/y.npz", x=ARRAY)
    save("out/y.npz", x=ARRAY)
    save("out/z.npz", x=ARRAY)
    files = ["in/x.npz", "in/y.npz", "out/z.npz"]
    result = tensorq("submit", "net", *files, "-o", "out", "--redis", redis_server.url)
    assert (result.exit_code, "the result of out/z.npz would" in result.stderr) == (2, True), result.output
    assert redis.keys() == []


@pytest.mark.parametrize(("file", "more"), [("d/x.npz", ["--no-wait"]), ("x=d/x.npy", ["--no-wait"])])
def test_where_no_result_is_written_none_is_in_the_way(tensorq, save, redis, redis_server, file, more):
    save("d/x.npz", x=ARRAY)
    save("d/x.npy")
    result = tensorq("submit", "net", file, "-o", "d", "--redis", redis_server.url, *more)
    assert result.exit_code == 0, result.output
