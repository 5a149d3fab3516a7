"""A serializer that never unpickles: RQ reads our jobs with it."""

from __future__ import annotations

import pickle
from typing import Any

from tensorq.errors import WireError


class WriteOnly:
    """Writes what RQ's default serializer writes, and refuses to read.

    RQ catches the refusal where it reads ``meta`` and keeps its bytes as they are.
    """

    @staticmethod
    def dumps(value: object) -> bytes:
        """Pickles, for stock tools to read."""
        return pickle.dumps(value, protocol=5)

    @staticmethod
    def loads(data: bytes) -> Any:
        """Refuses.

        Raises:
            WireError: always.
        """
        raise WireError("tensorq does not unpickle job data")
