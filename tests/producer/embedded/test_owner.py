"""The server ends with its owner, whatever the end is like, and not before."""

from __future__ import annotations

import os
import signal

import pytest

from tensorq.embedded import EmbeddedRedis, watcher

pytestmark = pytest.mark.integration

SLEEP = "time.sleep(20); os._exit(0)"


def test_ends_after_kill_9_of_the_owner(owner, gone):
    one = owner(f"server.start(); tell(server); {SLEEP}")
    one.process.kill()
    assert gone(one.server, one.watcher, one.folder)


def test_ends_after_kill_9_while_a_forked_child_keeps_the_pipe(owner, gone):
    one = owner(
        f"""
        server.start()
        child = fork()
        tell(server)
        print(child, flush=True)
        {SLEEP}
        """
    )
    child = int(one.line())
    one.process.kill()
    assert gone(one.server, one.watcher, one.folder)
    os.kill(child, signal.SIGKILL)


def test_ends_after_kill_9_with_a_forked_child_and_no_pidfd(owner, gone, tmp_path):
    wrapper = tmp_path / "watcher.py"
    wrapper.write_text(
        f"import os, runpy\ndel os.pidfd_open\nrunpy.run_path({watcher.__file__!r}, run_name='__main__')"
    )
    one = owner(
        f"""
        keeper.watcher.__file__ = {str(wrapper)!r}
        server.start()
        child = fork()
        tell(server)
        print(child, flush=True)
        {SLEEP}
        """
    )
    child = int(one.line())
    one.process.kill()
    assert gone(one.server, one.watcher, one.folder)
    os.kill(child, signal.SIGKILL)


def test_ends_when_the_watcher_is_killed(owner, gone):
    one = owner(f"server.start(); tell(server); print(server.wait(5), flush=True); server.close(); {SLEEP}")
    os.kill(one.watcher, signal.SIGKILL)
    assert gone(one.server)
    assert one.line() == str(-signal.SIGKILL)
    assert gone(one.folder)


def test_ends_when_the_owner_ends_without_closing(owner, gone):
    one = owner("server.start(); tell(server); os._exit(0)")
    assert gone(one.server, one.watcher, one.folder)


def test_ctrl_c_reaches_the_server_only_through_its_owner(owner, gone):
    one = owner(
        f"""
        import redis
        def ask(*_):
            with redis.Redis.from_url(server.url) as connection:
                print(connection.ping(), flush=True)
            raise KeyboardInterrupt
        signal.signal(signal.SIGINT, ask)
        try:
            with server:
                tell(server)
                {SLEEP}
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        """
    )
    assert os.getpgid(one.server) != one.process.pid
    assert os.getpgid(one.watcher) != one.process.pid
    os.killpg(one.process.pid, signal.SIGINT)
    assert one.line() == "True"
    assert one.line() == "interrupted"
    assert gone(one.server, one.watcher, one.folder, within_s=0)


def test_a_sigint_sent_to_the_watcher_is_ignored(owner, gone):
    one = owner(f"server.start(); tell(server); {SLEEP}")
    os.kill(one.watcher, signal.SIGINT)
    assert not gone(one.server, within_s=0.3)


def test_a_forked_child_cannot_end_it(owner, gone):
    one = owner(
        f"""
        with server:
            child = os.fork()
            if child == 0:
                server.close()
                os._exit(0)
            os.waitpid(child, 0)
            tell(server)
            {SLEEP}
        """
    )
    assert not gone(one.server, within_s=0.3)
    assert one.folder.exists()


def test_closing_does_not_wait_for_a_forked_child(owner, gone, binary, tmp_path):
    one = owner(
        f"""
        server = EmbeddedRedis({str(tmp_path)!r}, binary={str(binary)!r}).start()
        child = fork()
        tell(server)
        before = time.monotonic()
        server.close()
        server.start().close()
        os.kill(child, signal.SIGKILL)
        print(time.monotonic() - before, flush=True)
        """
    )
    assert float(one.line()) < 2
    assert gone(one.server, one.watcher, within_s=0)


def test_a_directory_is_free_right_after_kill_9_of_its_owner(owner, binary, tmp_path, connect):
    one = owner(
        f"""
        server = EmbeddedRedis({str(tmp_path)!r}, binary={str(binary)!r}, appendonly=True).start()
        tell(server)
        {SLEEP}
        """
    )
    connect(f"unix://{tmp_path}/redis.sock").set("key", "value")
    one.process.kill()
    with EmbeddedRedis(tmp_path, binary=binary, appendonly=True) as server:
        assert server.pid != one.server
        assert connect(server.url).get("key") == "value"
