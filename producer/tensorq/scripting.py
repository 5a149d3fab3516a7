"""Lua scripts kept as files: loaded by hash, with NOSCRIPT handled alone and inside pipelines."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from redis import Redis
from redis.exceptions import NoScriptError

Argument = str | bytes | int | float | memoryview


class Script:
    """One Lua script, read from a package's ``scripts`` folder.

    Args:
        package: the package that holds the folder.
        name: file name without ``.lua``.
    """

    def __init__(self, package: str, name: str) -> None:
        self.name = name
        self.source = files(package).joinpath("scripts", f"{name}.lua").read_text("utf-8")
        self.sha = hashlib.sha1(self.source.encode(), usedforsecurity=False).hexdigest()

    def __call__(self, client: Redis, keys: Sequence[str], args: Sequence[Argument]) -> Any:
        """Runs the script and returns its reply; loads it first where the server does not know it."""
        try:
            return client.evalsha(self.sha, len(keys), *keys, *args)
        except NoScriptError:
            return client.eval(self.source, len(keys), *keys, *args)

    def run_after(
        self,
        client: Redis,
        commands: Sequence[Sequence[Argument]],
        calls: Sequence[tuple[Sequence[str], Sequence[Argument]]],
    ) -> list[Any]:
        """Runs plain commands and then calls of this script, in one round trip.

        Args:
            client: where to run them.
            commands: plain commands, sent first; their errors are raised.
            calls: keys and arguments of each call.

        Returns:
            The reply of each call, in order. A call that the server could not run because it did not know
            the script is run again alone, so a script used here must not mind commands being run twice.
        """
        if not commands and len(calls) == 1:
            return [self(client, *calls[0])]
        with client.pipeline(transaction=False) as pipe:
            for command in commands:
                pipe.execute_command(*command)
            for keys, args in calls:
                pipe.evalsha(self.sha, len(keys), *keys, *args)
            replies = pipe.execute(raise_on_error=False)
        for position, reply in enumerate(replies):
            if isinstance(reply, NoScriptError):
                replies[position] = self(client, *calls[position - len(commands)])
            elif isinstance(reply, Exception):
                raise reply
        return replies[len(commands) :]
